// Forms whose question was answered with yes, until they are sent. They are not marked by an attribute: an update of the
// page removes attributes that did not come from the server.

/** @type {WeakSet<HTMLFormElement>} */
export const confirmed = new WeakSet();
