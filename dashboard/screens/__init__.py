"""The screens: one a lane, the same places on each."""
