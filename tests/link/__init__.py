"""The cable between an agent and a control plane, with every fault that tests and benchmarks inject into it.
No test is here, and nothing that knows what the agent does with a fault.
"""
