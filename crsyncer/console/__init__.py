"""What operators ask: status, explain, doctor, diff, pending, holds; pure documents and the drivers that fill them.

Nothing here changes what is synced, but the control commands that an operator gives.
"""
