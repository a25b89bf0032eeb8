"""Meters: histograms, per-thread rows, phase trees and the clock that Python code is handed."""
