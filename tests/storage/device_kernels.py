"""Calls into the device kernels as a log makes them, for tests of devices and faults."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.native.kernel import inner
from engine.storage.device import sync_file, sync_in_any_mode, write_bytes


@inner
def write_at(device, file, descriptor, payload, offset):
    return write_bytes(device, file, descriptor, payload.ctypes.data, payload.size, offset)


@inner
def sync(device, file, descriptor):
    return sync_file(device, file, descriptor)


@inner
def sync_anyway(device, file, descriptor):
    return sync_in_any_mode(device, file, descriptor)


class DeviceFile:
    """A zeroed file on a device, numbered as a segment is."""

    def __init__(self, device: npt.NDArray[np.void], folder: Path, *, number: int = 1, size: int = 8192) -> None:
        self.device, self.number = device[0], number
        self.path = folder / f"{number:08d}.wal"
        self.path.write_bytes(bytes(size))
        self._file = self.path.open("r+b", buffering=0)
        self.descriptor = self._file.fileno()

    def write(self, payload: bytes, offset: int) -> int:
        """Write through the device; return 0 or -errno."""
        return int(write_at(self.device, self.number, self.descriptor, np.frombuffer(payload, np.uint8), offset))

    def sync(self) -> int:
        """Sync as the device's mode has it; return 0 or -errno."""
        return int(sync(self.device, self.number, self.descriptor))

    def sync_anyway(self) -> int:
        """Sync whatever the mode; return 0 or -errno."""
        return int(sync_anyway(self.device, self.number, self.descriptor))

    def close(self) -> None:
        """Close the file."""
        self._file.close()
