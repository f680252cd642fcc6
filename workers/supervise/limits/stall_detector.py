"""Watchdog for runs that are alive but make no progress."""

import statistics
import time
from collections import deque

from workers.supervise.timing import Timing

# The newest gaps only: the pace of a run may change, for example when it continues with longer epochs.
MAX_GAPS = 256


class StallDetector:
    """Compares the time since the last progress with a limit.

    Before the first progress come imports, data and compilation, so that time has its own limit, as has each
    later phase without progress, such as timing. Otherwise the limit is `max(silence, silence_factor × median
    gap between progress events, epoch_factor × longest epoch)`: after an epoch come validation, checkpoints
    and hooks, which take longer in longer epochs.
    """

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._last = time.monotonic()
        self._gaps: deque[float] = deque(maxlen=MAX_GAPS)
        self._has_progressed = False
        self._in_phase = False
        self._epoch_began = self._last
        self._longest_epoch = 0.0

    def phase_began(self) -> None:
        """Limit the time until the next progress as in a phase."""
        self._in_phase = True
        self.reset_timer()

    def epoch_ended(self) -> None:
        """Measure the epoch that has just ended."""
        now = time.monotonic()
        self._longest_epoch = max(self._longest_epoch, now - self._epoch_began)
        self._epoch_began = now

    def progress_made(self) -> None:
        now = time.monotonic()
        if not self._has_progressed:
            self._epoch_began = now  # the first epoch is measured without data and compilation
        self._in_phase = False
        if self._has_progressed:
            self._gaps.append(now - self._last)
        self._has_progressed = True
        self._last = now

    def restart(self) -> None:
        """Start again for another training, which prepares data and compiles before its first progress."""
        self._has_progressed = self._in_phase = False
        self.reset_timer()
        self._epoch_began = self._last

    def reset_timer(self) -> None:
        """Count the time without progress from now on."""
        self._last = time.monotonic()

    @property
    def seconds_silent(self) -> float:
        return time.monotonic() - self._last

    @property
    def limit(self) -> float:
        timing = self._timing
        measured = timing.epoch_factor * self._longest_epoch
        if not self._has_progressed:
            return max(timing.first_progress, timing.silence)
        if self._in_phase:
            return max(timing.phase, timing.silence, measured)
        # The median, because one long gap, such as a checkpoint, must not raise the limit.
        median = statistics.median(self._gaps) if self._gaps else 0.0
        return max(timing.silence, timing.silence_factor * median, measured)

    @property
    def stalled(self) -> bool:
        return self.seconds_silent > self.limit
