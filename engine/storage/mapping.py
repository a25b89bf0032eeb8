"""Files as read-only arrays of bytes, mapped from the page cache: no copy, and no memory of our own.

A file that another program cuts while it is mapped ends the process (SIGBUS), so map what is written once and
renamed into place, as a NameNode's images are; `contents.read_file` is for everything else.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.storage.contents import opened


def map_file(path: Path) -> npt.NDArray[np.uint8]:
    """Return the bytes of a regular file, read-only; the mapping lives as long as the array and its views.

    Raises FileTrouble where the file cannot be opened or mapped, or is no regular file. Symbolic links are followed.
    """
    with opened(path.resolve(), os.O_RDONLY, "read") as descriptor:
        size = os.fstat(descriptor).st_size
        if size == 0:
            empty = np.zeros(0, np.uint8)
            empty.flags.writeable = False
            return empty
        mapped = mmap.mmap(descriptor, size, prot=mmap.PROT_READ)
    mapped.madvise(mmap.MADV_SEQUENTIAL)
    return np.frombuffer(mapped, np.uint8)
