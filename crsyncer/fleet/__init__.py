"""The fleet controller in the cloud: one replica per robot from one source and one placement (rules F).

It stands on `runtime` and the adapters; what the robot's agent does belongs to `engine` and `console`.
"""
