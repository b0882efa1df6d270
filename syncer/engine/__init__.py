"""The straight path, one folder a step: seeing, queueing, deciding, writing; and the patrol that goes over it again."""
