"""The image lane's verdict: what it is at, or what came of it, in one line of words."""

from __future__ import annotations

from dashboard.image_window import inodes_per_second, share_done, thread_use
from dashboard.verdict import Verdict
from engine.errors import printable
from engine.snapshot import Absent, ImageRun, ImageSnapshot, ImageSummary
from engine.units import format_count, format_duration


def image_verdict(image: ImageSnapshot | Absent) -> Verdict:
    """Say what the lane does, or how the newest load ended."""
    if isinstance(image, Absent):
        return Verdict("dim", printable(image.reason))
    if image.state == "making":
        return Verdict("good", "a synthetic image is being made: there is no file to load yet", "x cancels")
    if image.state == "loading":
        return Verdict("good", _under_way(image), "x cancels")
    if image.state == "loaded":
        return _loaded(image)
    if image.state == "cancelled":
        return Verdict("dim", "the load was cancelled; its memory is free", "s loads again")
    if image.state == "failed":
        return Verdict("bad", printable(image.error) or "the load failed")
    if image.state == "closed":
        return Verdict("dim", "closed")
    return Verdict("dim", "no image is loaded", f"s loads {image_name(image.next_image)}, o chooses another")


def image_name(image: str) -> str:
    """Return what a person calls an image: its file's name, or what a synthetic one is."""
    return printable(image if image.startswith("synthetic image") else image.rpartition("/")[2] or image)


def _under_way(image: ImageSnapshot) -> str:
    step = next((row.name for row in reversed(image.phases) if row.state == "running"), "LoadingFsImage")
    rate = inodes_per_second(image)
    shown = f", {format_count(rate)} inodes/s" if rate is not None else ""
    busy = sum(use.share for use in thread_use(image) if use.name.isdigit())
    return f"loading: {printable(step)}, {share_done(image) * 100:.0f} % done{shown}, threads {busy * 100:.0f} % busy"


def _loaded(image: ImageSnapshot) -> Verdict:
    rate = inodes_per_second(image)
    took = f"{max(image.inodes, 0):,} inodes in {format_duration(max(image.elapsed_ns, 0))}"
    took += f", {format_count(rate)}/s" if rate is not None else ""
    summary = image.summary
    if isinstance(summary, ImageSummary):
        if image.md5 == "mismatch":
            return Verdict("bad", f"{took}; its MD5 is not the one in the .md5 file", "b browses it")
        if summary.trouble_count:
            what = "; ".join(printable(trouble) for trouble in summary.troubles)
            return Verdict("warn", f"{took}; not whole: {what}", "b browses it")
        return Verdict("good", f"{took}; the tree is whole", "b browses it")
    return Verdict("good", f"{took} by {printable(image.strategy)}{_searches(image)}", "m and s try another")


def _searches(image: ImageSnapshot) -> str:
    run: ImageRun | None = image.runs[-1] if image.runs else None
    if run is None or not run.resolve_ns:
        return ""
    return f", {format_duration(run.resolve_ns)} of it in {run.resolve_calls:,} searches for a parent"
