"""Themes: colours by role, in TOML, with rules of contrast that tests hold. Widgets name roles, never values."""
