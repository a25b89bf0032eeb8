"""What the screens are made of: functions from figures to lines of text with roles, and two widgets that draw lines."""
