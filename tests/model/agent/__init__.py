"""What belongs to no single rule: commands, events, reasons, stops, and hazards where several rules meet.

Here too the real engine runs on virtual time.
"""
