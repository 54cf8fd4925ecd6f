"""Bodies as the API server would write them itself: what its PATCH keeps as it is."""

from __future__ import annotations

import math

import pytest

from dra_driver.kube.decode import decode
from dra_driver.kube.encode import encode
from dra_driver.model.errors import InvalidValue

# What is left after a runtime.RawExtension went through DefaultUnstructuredConverter of
# k8s.io/apimachinery 0.36.3 until it changed no more.
WRITTEN = {
    '{"b": 1,  "a": "x"}': '{"a":"x","b":1}',
    '{"b":[1, [2.0], {"d":null,"c":true}],"a":{}}': '{"a":{},"b":[1,[2],{"c":true,"d":null}]}',
    '{"é":1,"z":2,"Z":3,"_":4,"😀":5,"\ufdff":6}': '{"Z":3,"_":4,"z":2,"é":1,"\ufdff":6,"😀":5}',
    '{"a":1,"a":2}': '{"a":2}',
    "[]": "[]",
    "1.0": "1",
    "1e3": "1000",
    "1.5": "1.5",
    "0.1": "0.1",
    "123456.789e3": "123456789",
    "1e20": "100000000000000000000",
    "123456789012345680000": "123456789012345680000",
    "1e21": "1e+21",
    "100000000000000000000000": "1e+23",
    "-1.2345e25": "-1.2345e+25",
    "1e300": "1e+300",
    "1e-5": "0.00001",
    "1e-6": "0.000001",
    "0.000001234": "0.000001234",
    "1e-7": "1e-7",
    "-1.5e-7": "-1.5e-7",
    "1e-10": "1e-10",
    "4.9e-324": "5e-324",
    "1.7976931348623157e308": "1.7976931348623157e+308",
    "9223372036854775807": "9223372036854775807",
    "9223372036854775808": "9223372036854776000",
    "-9223372036854775808": "-9223372036854775808",
    "-9223372036854775809": "-9223372036854776000",
    "18446744073709551615": "18446744073709552000",
    "9007199254740993": "9007199254740993",
    "9007199254740993.0": "9007199254740992",
    "-0": "0",
    "-0.0": "0",
    "0e5": "0",
    '"<&>"': r'"\u003c\u0026\u003e"',
    '{"<":1,"&":2}': r'{"\u0026":2,"\u003c":1}',
    r'"\u2028\u2029"': r'"\u2028\u2029"',
    r'"\u00e9é"': '"éé"',
    r'"\ud83d\ude00"': '"😀"',
    r'"\udc00x\ud800"': '"\ufffdx\ufffd"',
    r'"\u0000\b\f\n\r\t\u001f\u007f\u0080"': '"\\u0000\\b\\f\\n\\r\\t\\u001f\x7f\x80"',
    r'"\/\\\""': r'"/\\\""',
    '{"a,1.50,":[1.50,":2e3,"],"\\":3.0":-0.5}': '{"\\":3.0":-0.5,"a,1.50,":[1.5,":2e3,"]}',
}


@pytest.mark.parametrize(("sent", "written"), WRITTEN.items(), ids=range(len(WRITTEN)))
def test_written_as_the_server_writes_what_it_has_read(sent: str, written: str) -> None:
    assert encode(decode(sent.encode())).decode() == written
    assert encode(decode(written.encode())).decode() == written


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan, 10**400])
def test_what_is_no_number_of_json_is_refused(number: float) -> None:
    with pytest.raises(InvalidValue, match="too large"):
        encode({"a": [number]})
