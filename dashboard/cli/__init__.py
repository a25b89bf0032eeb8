"""The command line: parse, call, print. stdout is data, stderr is narration, exit codes are an API."""
