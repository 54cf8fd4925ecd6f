"""The functions of each library."""

from __future__ import annotations

from typing import Final

from tests.unit.selector.expressions.theme import Theme

STRINGS: Final = Theme(
    matches=(
        'size("é€😀") == 3 && GCU.symbols.size() == 3 && size(b"é") == 2',
        'GCU.model.startsWith("S") && GCU.model.endsWith("0") && GCU.model.contains("6")',
        'GCU.model.lowerAscii() == "s60" && "é".upperAscii() == "é" && "aB".upperAscii() == "AB"',
        r'" \t\u00a0a\u2003 ".trim() == "a" && "\u001ca".trim() != "a"',
        'GCU.words.split(",") == ["a", "b", "c"] && GCU.words.split(",", 2) == ["a", "b,c"]',
        '"a,b".split(",", 0) == [] && "".split(",") == [""] && "".split("") == []',
        '"é€".split("") == ["é", "€"] && "abc".split("", 2) == ["a", "bc"]',
        '"abc".replace("", "-") == "-a-b-c-" && "aaa".replace("a", "b", 2) == "bba"',
        '"abc".substring(1) == "bc" && "abc".substring(1, 2) == "b" && "abc".substring(3) == ""',
        '"é€é".indexOf("€") == 1 && "abcabc".indexOf("b", 2) == 4 && "abc".indexOf("x") == -1',
        '"abcabc".lastIndexOf("b") == 4 && "abcabc".lastIndexOf("b", 3) == 1',
        '"abc".indexOf("", 10) == 10 && "abc".lastIndexOf("") == 3',
        '"abc".charAt(1) == "b" && "abc".charAt(3) == ""',
        r'strings.quote("é\n\"") == "\"é\\n\\\"\""',
        r'"\x41\u0042\U00000043\104" == "ABCD" && "\a\b\f\n\r\t\v\\\'\"\`\?".size() == 12',
        r"""'''a'b''' == "a'b" && r"\d" == "\\d" && r"\" == "\\" && b"\xff" == b"\377" """,
        r'b"a\x62" == b"ab"',
        '"// no comment" == "// no comment"',
    ),
    differs=('"é" == "e\\u0301"',),
    fails=(
        '"abc".substring(4) == ""',
        '"abc".substring(2, 1) == ""',
        '"abc".indexOf("c", -1) == -1',
        '"abc".charAt(4) == ""',
        "[1, 2].join() == ''",
        "dyn([1]).join() == ''",
        '"a".contains(1)',
        '"abc".reverse() == "cba"',
        r'"\q" == "q"',
        r'b"\u00e9" == b"e"',
        r'"\ud800" == ""',
        '"a" "b" == "a"',
        '"a == "a"',
        "device.driver ==",
    ),
)
REGEX: Final = Theme(
    matches=(
        'GCU.model.matches("^S[0-9]+$") && matches("abc", "b")',
        r'"a\nb".matches("(?m)^b") && "é".matches("^.$") && "a".matches("(?i)A")',
        '"a".matches("(?P<n>a)") && "a".matches("\\\\pL\\\\z")',
        '"123 abc".find("[0-9]+") == "123" && "abc".find("x") == ""',
        '"baaac".findAll("a*") == ["", "aaa", ""] && "aaa".findAll("a*") == ["aaa"]',
        '"abc".findAll("") == ["", "", "", ""] && "é€é".findAll("€") == ["€"]',
        '"abc".findAll("[a-z]", 2) == ["a", "b"] && "abc".findAll("b", 0) == []',
        '"aaaaaaaaaaaaaaaaaaaaaaaaaaaa!".matches("^(a+)+$") == false',
    ),
    differs=(r'"a\nb".matches("^b")', r'"a\nb".matches("a.b")'),
    fails=(
        '"a".matches("(")',
        'true || "a".matches("(")',
        'GCU.model.matches("[" + "a")',
        '"a".matches("a(?=b)")',
        '"a".matches("a{2000}")',
        '"a".matches("\\\\C")',
    ),
)
FORMAT: Final = Theme(
    matches=(
        '"%s is %d and %.1f%%".format(["x", 1, 2.25]) == "x is 1 and 2.2%"',
        '"%x %X %o %b".format([255, "hi", 8, true]) == "ff 6869 10 1"',
        '"%d %d".format([-5, 5u]) == "-5 5" && "%b %x".format([-5, -255]) == "-101 -ff"',
        '"%f".format([1234567.5]) == "1,234,567.500000" && "%.0f".format([2.5]) == "2"',
        '"%e".format([1052.0332]) == "1.052033×10⁰³"',
        '"%f %f".format([1.0 / 0.0, "NaN"]) == "∞ NaN"',
        r'"%s".format([[1, "a", true, null, 1.5]]) == "[1, \"a\", true, null, 1.500000]"',
        r'"%s".format([{"b": 1, "a": [2]}]) == "{\"a\":[2], \"b\":1}"',
        '"%s %s %s".format([true, null, b"x"]) == "true null x" && "%%".format([]) == "%"',
        '"%s".format([1234567.5]) == "1.2345675e+06"',
    ),
    fails=(
        '"%s %s".format(["a"]) == ""',
        '"a".format([1]) == "a"',
        '"%z".format([1]) == ""',
        '"%5d".format([1]) == ""',
        '"%d".format(["a"]) == "" || true',
        '"%s".format([quantity("1")]) == ""',
    ),
)
LISTS: Final = Theme(
    matches=(
        "[1, 2, 3].sum() == 6 && [1.5, 2.5].sum() == 4.0 && [1u].sum() == 1u",
        "[3, 1].min() == 1 && [3, 1].max() == 3 && [1.5, 0.5].min() == 0.5",
        "[1, 2, 2].isSorted() && ![2, 1].isSorted() && [].isSorted()",
        "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(5) == -1",
        "[1, 2, 3].slice(0, 2) == [1, 2] && [[1], [2]].flatten() == [1, 2]",
        "[3, 1, 2].sort() == [1, 2, 3] && [1, 2].reverse() == [2, 1]",
        "[1, 1, 2].distinct() == [1, 2] && lists.range(3) == [0, 1, 2]",
        '["aa", "b"].sortBy(x, x.size()) == ["b", "aa"]',
        "dyn([1.0, 2.0]).sum() == 3.0 && [dyn(1), dyn(2)].sum() == 3",
        '[dyn("a"), dyn(1)].max() == "a" && [dyn("a"), dyn(1)].min() == "a"',
        '[dyn(1), dyn("a"), dyn(2)].max() == 2',
        '[dyn(1), dyn("a"), dyn(0)].isSorted() && [dyn(true), dyn(1)].isSorted()',
        "[1.0, 0.0 / 0.0].max() == 1.0 && [0.0 / 0.0, 1.0].isSorted()",
        '[duration("1m"), duration("2m")].sum() == duration("3m")',
    ),
    fails=(
        "[].min() == 1",
        '["a"].sum() == 0',
        "[dyn(1), dyn(2u)].sum() == 3",
        "[9223372036854775807, 1].sum() == 0",
        "[1, 2, 3].slice(1, 4) == []",
        "dyn([null]).max() == null",
        "[dyn(1), dyn([1])].max() == 1",
        '[dyn("a"), dyn(null)].isSorted()',
        "dyn([[1]]).isSorted()",
        'dyn(["a"]).reverse().isSorted()',
        '{"a": 1}.sortBy(z, z) == []',
    ),
)
QUANTITIES: Final = Theme(
    matches=(
        'CAPACITY.memory.isGreaterThan(quantity("40Gi"))',
        'CAPACITY.memory.isLessThan(quantity("42977Mi")) && sign(CAPACITY.memory) == 1',
        'CAPACITY.memory.compareTo(quantity("42976Mi")) == 0',
        'quantity("1Ki").add(1) == quantity("1025")',
        'sign(quantity("1").sub(quantity("2"))) == -1 && quantity("50k").sub(20000).isInteger()',
        '!quantity("1500m").isInteger() && quantity("2k").asInteger() == 2000',
        '!quantity("1.5Gi").isInteger() && !quantity("1000m").isInteger()',
        'quantity("1500m").asApproximateFloat() == 1.5',
        'isQuantity("1.5Gi") && isQuantity("1e3") && !isQuantity("five") && !isQuantity("200K")',
        'quantity("0.1n") == quantity("1n") && quantity("16Ei") == quantity("8Ei")',
        'quantity("1E") == quantity("1e18") && isQuantity("1e100") && !isQuantity("")',
    ),
    differs=('CAPACITY.memory.isGreaterThan(quantity("1Ti"))',),
    fails=(
        'quantity("five") == quantity("5")',
        'quantity("1500m").asInteger() == 1',
        'quantity("1").sign() == 1',
        'quantity("1") < quantity("2")',
        'quantity("1").add("1") == quantity("2")',
        'quantity("2") == quantity("1").add(1)',
    ),
)
SEMVERS: Final = Theme(
    matches=(
        'GCU.firmware.isGreaterThan(semver("1.2.2")) && GCU.firmware.isLessThan(semver("1.3.0"))',
        "GCU.firmware.major() == 1 && GCU.firmware.minor() == 2 && GCU.firmware.patch() == 3",
        'GCU.firmware.compareTo(semver("1.2.3+build")) == 0',
        'semver("1.2.3-a").isLessThan(semver("1.2.3"))',
        'semver("1.2.3-1").compareTo(semver("1.2.3-a")) == -1',
        'semver("1.2.3-a.b").isGreaterThan(semver("1.2.3-a"))',
        'semver("v1", true) == semver("1.0.0") && isSemver("01.02.03", true)',
        '!isSemver("1.2") && !isSemver("v1.2.3") && !isSemver("01.2.3") && !isSemver("1.2.3-")',
    ),
    fails=(
        'semver("x").major() == 1',
        'semver("1.0-a", true) == semver("1.0.0")',
        'semver("1.2.3") < semver("2.0.0")',
    ),
)
CONVERSIONS: Final = Theme(
    matches=(
        'int("-5") == -5 && int(5.9) == 5 && int(-5.9) == -5 && int(7u) == 7',
        'uint("5") == 5u && uint(5.9) == 5u',
        'double("1e3") == 1000.0 && double(1) == 1.0 && double("Inf") > 1e308',
        'double("1_0.5") == 10.5 && double("-.5") == -0.5 && double("1.") == 1.0',
        'bool("TRUE") && !bool("F") && bool("1") && bool(true)',
        'string(true) == "true" && string(5u) == "5" && string(b"a") == "a" && string("a") == "a"',
        'string(1.0) == "1" && string(0.1) == "0.1" && string(1000000.0) == "1e+06"',
        'string(0.00001) == "1e-05" && string(-0.0) == "-0" && string(1.25e20) == "1.25e+20"',
        'bytes("é").size() == 2 && dyn(1) == 1 && string(GCU.memoryMiB) == "42976"',
        'duration("1h30m") == duration("90m") && duration("-1s") < duration("0")',
        'string(duration("90m")) == "5400s" && string(duration("-1.5s")) == "-1.5s"',
        'duration("1h") + duration("1m") == duration("61m")',
        'timestamp("2020-01-01T02:00:00+02:00") == timestamp("2020-01-01T00:00:00Z")',
        'timestamp("2020-01-02T00:00:00Z") - timestamp("2020-01-01T00:00:00Z") == duration("24h")',
        'int(timestamp("1970-01-01T00:00:10.9Z")) == 10 && int(duration("1s")) == 1000000000',
        'string(timestamp("2020-01-02T03:04:05.5+02:00")) == "2020-01-02T03:04:05.5+02:00"',
    ),
    fails=(
        'int("x") == 1',
        "int(dyn('x')) == 1",
        "int(true) == 1",
        "int(1e19) == 1",
        "uint(-1) == 1u",
        'double("") == 0.0',
        'double("banana") > 0.0',
        'double("1__0") == 10.0',
        'bool("yes")',
        "bool(1)",
        'string(b"\\xff") == ""',
        'string(GCU.firmware) == "1.2.3"',
        'duration("1") == duration("1s")',
        'timestamp("2020-13-01T00:00:00Z") == timestamp(0)',
        'timestamp("9999-12-31T23:59:59Z") + duration("1h") == timestamp(0)',
        'duration("290000h") + duration("2500000h") > duration("0")',
    ),
)

TOO_COSTLY: Final = (
    '["a", "b"].join() == "ab"',
    'GCU.words.split(",").join("-") == "a-b-c"',
    '["b", "a"].min() == "a"',
    'quantity("2") != quantity("1").add(1)',
)
"""They match DEVICE, but the API server stores no claim with them: it takes the size of the result
for unlimited, and so the cost."""
