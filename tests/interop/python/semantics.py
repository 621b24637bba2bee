"""What a schema cannot say of a request that is well formed, for the fuzzer: its valid requests are made to follow it.

A whole number that is written as a fraction (`341.0`) is an integer to JSON Schema and not to this API, and a bank is one of
the directory, which changes.
"""

import schemathesis

BANKS = ["VCB", "970436", "vietcombank", "Techcombank"]


@schemathesis.hook
def map_case(context, case):
    valid = case.meta is not None and case.meta.generation.mode.is_positive
    if valid and isinstance(case.body, dict):
        case.body = {name: _followed(name, value) for name, value in case.body.items()}
    return case


def _followed(name, value):
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if name == "bank" and isinstance(value, str):
        return BANKS[len(value) % len(BANKS)]
    return value
