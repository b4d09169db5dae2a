"""What `doctor` asks and says, also about moving from the Go cr-syncer.

What an account must not be allowed is in `core/accounts`.
"""
