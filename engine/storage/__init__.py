"""The operating system below the lanes: devices, files and folders, probes and the fault table."""
