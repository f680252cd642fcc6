"""The child's end of the socket to the router, with the heartbeat that shows that it is not stopped."""

import contextlib
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from workers.model_process.frames import BEAT_SECONDS, Frame, FrameReader, write_frame


class Connection:
    """Sends and receives frames. Any thread may send."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._frames = FrameReader(connection)
        self._sending = threading.Lock()

    def read(self) -> Frame | None:
        """Wait for the next frame; return None if the router has closed the connection."""
        return self._frames.read()

    def send(self, header: dict[str, Any], tensors: Sequence[npt.NDArray[Any]] = ()) -> None:
        """Send one frame; blocks until it is in the kernel's buffer."""
        with self._sending:
            write_frame(self._socket, header, tensors)

    def start_heartbeat(self) -> None:
        """Send a beat every `BEAT_SECONDS` from its own thread, also during a long batch."""
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    def _beat(self) -> None:
        # The main thread notices the end of the connection, and ends the process.
        with contextlib.suppress(OSError):
            while True:
                self.send({"op": "beat"})
                time.sleep(BEAT_SECONDS)
