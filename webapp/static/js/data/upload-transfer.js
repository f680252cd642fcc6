// Sends a file to the server in parts by the tus protocol, and resumes after an interruption.
import { address, base } from "../shared/addresses.js";
import "../../vendor/tus-js-client-4.3.1/tus.min.js";

/** @typedef {typeof import("../../vendor/tus-js-client-4.3.1/tus.js")} Tus */
/** @typedef {import("../../vendor/tus-js-client-4.3.1/tus.js").Upload} Upload */
/** @typedef {import("../../vendor/tus-js-client-4.3.1/tus.js").DetailedError} DetailedError */

const tus = /** @type {Tus} */ (/** @type {any} */ (window).tus);
const PLACE = "/api/v1/uploads";
// A proxy that collects a body before it passes it on can lose one part at most.
const PART_BYTES = 64 * 1024 * 1024;
const RETRY_DELAYS = [0, 1000, 3000, 5000, 10000, 20000, 30000, 30000];
const LOCKED = 423;
const TOO_LARGE = 413;
const CUT_BY_PROXY =
  `A proxy in front of Trainyard refuses requests of ${PART_BYTES / 2 ** 20} MiB (413), the size of a part of a file. ` +
  "Its operator can allow them (nginx: client_max_body_size 65m, Caddy: request_body max_size 65MiB). " +
  "Then send the file again: what has arrived is kept.";
// A network that vanishes without notice reports no error for many minutes.
const STALL_MILLISECONDS = 60_000;
const SAMPLE_BYTES = 64 * 1024;

/**
 * The parts of a page that show a transfer.
 * @typedef {object} Report
 * @property {(sent: number, total: number) => void} progress
 * @property {(why: string) => void} interrupted the connection is lost; `start` tries again
 * @property {(why: string) => void} refused the server does not accept the file
 * @property {(id: string) => void} arrived
 */

export class Transfer {
  /** @type {Upload} */ #upload;
  #report;
  #taken;
  #isWanted = false;
  #hasBegun = false;
  #watchdog = 0;

  /**
   * @param {File} file
   * @param {string} project
   * @param {string} token the CSRF token of the page
   * @param {Report} report
   * @param {string[]} taken the ids of uploads that are other files of the form, and may look the same
   */
  constructor(file, project, token, report, taken) {
    this.#report = report;
    this.#taken = taken;
    this.#upload = new tus.Upload(file, {
      endpoint: address(PLACE),
      chunkSize: PART_BYTES,
      retryDelays: RETRY_DELAYS,
      metadata: { filename: file.name, project },
      headers: { "X-CSRFToken": token },
      fingerprint: async () =>
        // Browsers keep the list of uploads for all paths of a host.
        [`trainyard${base()}`, project, file.name, file.size, file.lastModified, await sampleOf(file)].join("/"),
      onShouldRetry: (error) => navigator.onLine && mayPass(error),
      onProgress: (sent, total) => {
        this.#watch();
        report.progress(sent, total);
      },
      onAfterResponse: () => this.#watch(),
      onError: (error) => this.#fail(error),
      onSuccess: () => {
        this.#stop();
        report.arrived(idOf(this.#upload.url));
      },
    });
  }

  /** Send the file, or the rest of it if a part was sent before. */
  async start() {
    this.#isWanted = true;
    const found = this.#hasBegun ? [] : await this.#upload.findPreviousUploads();
    const earlier = found.filter(({ uploadUrl }) => !this.#taken.includes(idOf(uploadUrl)));
    // It may have been paused or cancelled meanwhile.
    if (!this.#isWanted) return;
    this.#hasBegun = true;
    this.#watch();
    if (earlier.length) this.#upload.resumeFromPreviousUpload(earlier[earlier.length - 1]);
    this.#upload.start();
  }

  /** Begin again if nothing moves from now on. */
  #watch() {
    clearTimeout(this.#watchdog);
    if (this.#isWanted) this.#watchdog = window.setTimeout(() => this.#restart(), STALL_MILLISECONDS);
  }

  async #restart() {
    await this.#upload.abort();
    if (this.#isWanted) this.start();
  }

  #stop() {
    this.#isWanted = false;
    clearTimeout(this.#watchdog);
  }

  pause() {
    this.#stop();
    return this.#upload.abort();
  }

  /** End the transfer, and delete the received bytes. */
  async cancel() {
    this.#stop();
    await this.#upload.abort(true).catch(() => null);
  }

  /** @param {Error | DetailedError} error */
  #fail(error) {
    this.#stop();
    const answer = "originalResponse" in error ? error.originalResponse : null;
    if (answer && !mayPass(error)) this.#report.refused(sentenceOf(answer));
    else this.#report.interrupted(answer ? sentenceOf(answer) : "The connection was lost.");
  }
}

/**
 * Return the id of an upload, by its address.
 * @param {string | null} address
 */
const idOf = (address) => address?.split("/").at(-1) ?? "";

/**
 * Return a hash (FNV-1a) of the first, middle and last bytes of a file. Files of one export can have equal names,
 * sizes and times. Browsers offer better hashes over HTTPS alone.
 * @param {File} file
 */
async function sampleOf(file) {
  let hash = 0x811c9dc5;
  for (const start of [0, Math.floor(file.size / 2), Math.max(0, file.size - SAMPLE_BYTES)]) {
    const bytes = new Uint8Array(await file.slice(start, start + SAMPLE_BYTES).arrayBuffer());
    for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193);
  }
  return (hash >>> 0).toString(16);
}

/**
 * Remove uploads from the browser's list, so that the same files begin new ones.
 * @param {string[]} ids
 */
export async function forgetUploads(ids) {
  const { urlStorage } = tus.defaultOptions;
  for (const { uploadUrl, urlStorageKey } of await urlStorage.findAllUploads()) {
    if (ids.includes(idOf(uploadUrl))) await urlStorage.removeUpload(urlStorageKey);
  }
}

/**
 * Return whether the same request may succeed later.
 * @param {Error | DetailedError} error
 */
function mayPass(error) {
  const answer = "originalResponse" in error ? error.originalResponse : null;
  if (!answer) return true;
  const status = answer.getStatus();
  // A conflict about the offset ends with the next request, which asks for it; one about a quota does not.
  const isOffset = status === 409 && "originalRequest" in error && error.originalRequest.getMethod() === "PATCH";
  return status === LOCKED || status === 408 || status === 429 || isOffset || (status >= 500 && status !== 507);
}

/**
 * Return why the server refused a request.
 * @param {{ getBody(): string, getStatus(): number }} answer
 */
const sentenceOf = (answer) => refusalOf(answer.getBody(), answer.getStatus());

/**
 * Return the sentence of a refusal.
 * @param {string} body
 * @param {number} status
 */
function refusalOf(body, status) {
  try {
    return String(JSON.parse(body).detail);
  } catch {
    // Not an answer of Trainyard.
    return status === TOO_LARGE ? CUT_BY_PROXY : `The server answered ${status}.`;
  }
}

/**
 * Delete an unfinished upload; return why it could not be deleted, or an empty text.
 * @param {string} id
 * @param {string} token
 */
export async function deleteUpload(id, token) {
  const headers = { "X-CSRFToken": token, "Tus-Resumable": "1.0.0" };
  const answer = await fetch(`${address(PLACE)}/${id}`, { method: "DELETE", headers }).catch(() => null);
  if (!answer) return "The server did not answer. Try again.";
  if (!answer.ok && answer.status !== 404) return refusalOf(await answer.text(), answer.status);
  await forgetUploads([id]);
  return "";
}
