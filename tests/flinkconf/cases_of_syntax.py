"""Further cases: keys, values, comments and bytes."""

from __future__ import annotations

from .answers import GPU, NULL, Case, Loads, Refuses, case

OF_SYNTAX: tuple[Case, ...] = (
    case(
        "flat keys in a block",
        "external-resource:\n  gpu.amount: 2\n  gpu.param.discovery-script.path: /x\n",
        Loads({"gpu.amount": "2", "gpu.param.discovery-script.path": "/x"}, skipped=(1,)),
        Loads({f"{GPU}amount": "2", f"{GPU}param.discovery-script.path": "/x"}),
    ),
    case(
        "two inner blocks of one name",
        "external-resource:\n  gpu:\n    amount: 1\n  gpu:\n    amount: 2\n",
        Loads({"amount": "2"}, skipped=(1, 2, 4)),
        Refuses("found duplicate key gpu", (4, 3)),
    ),
    case("key in quotes", f'"{GPU}amount": 2\n', Loads({f'"{GPU}amount"': "2"}), Loads({f"{GPU}amount": "2"})),
    case(
        "tab before a key",
        f"\t{GPU}amount: 2\n",
        Loads({f"{GPU}amount": "2"}),
        Refuses("found character '\\t(TAB)' that cannot start any token.", (1, 1)),
    ),
    case("# first in the value", "k: #b\nl: 1\n", Loads({"l": "1"}, skipped=(1,)), NULL),
    case("# in the key", "k#x: 1\nl: 1\n", Loads({"l": "1"}, skipped=(1,)), Loads({"k#x": "1", "l": "1"})),
    case(
        "anchor on a block",
        "base: &b\n  amount: 2\nexternal-resource:\n  gpu: *b\n",
        Loads({"amount": "2", "base": "&b", "gpu": "*b"}, skipped=(3,)),
        Loads({"base.amount": "2", f"{GPU}amount": "2"}),
    ),
    case(
        "merge key with a key of its own",
        "base: &b\n  amount: 2\nexternal-resource:\n  gpu:\n    <<: *b\n    amount: 3\n",
        Loads({"<<": "*b", "amount": "3", "base": "&b"}, skipped=(3, 4)),
        Loads({"base.amount": "2", f"{GPU}<<.amount": "2", f"{GPU}amount": "3"}),
    ),
    case(
        "alias without anchor",
        f"{GPU}amount: *x\n",
        Loads({f"{GPU}amount": "*x"}),
        Refuses("found undefined alias x", (1, 31)),
    ),
    case("anchor without a value", "k: &x\nl: 1\n", Loads({"k": "&x", "l": "1"}), NULL),
    case(
        "value that begins with %",
        "k: %a\nl: 1\n",
        Loads({"k": "%a", "l": "1"}),
        Refuses("found character '%' that cannot start any token.", (1, 4)),
    ),
    case("tag !!str", "k: !!str 2\nl: 1\n", Loads({"k": "!!str 2", "l": "1"}), Loads({"k": "2", "l": "1"})),
    case(
        "unknown tag",
        "k: !foo 2\nl: 1\n",
        Loads({"k": "!foo 2", "l": "1"}),
        Refuses("could not determine a constructor for the tag !foo", (1, 4)),
    ),
    case(
        "UTF-16 with BOM",
        "\ufeffa: 1\n".encode("utf-16-le"),
        Loads({}, skipped=(1,)),
        Loads({"a": "1"}),
    ),
    case("CR alone ends lines", f"{GPU}amount: 2\rl: 1\r", Loads({f"{GPU}amount": "2", "l": "1"})),
    case("UTF-8 value", "k: Gr\u00f6\u00dfe\nl: 1\n", Loads({"k": "Gr\u00f6\u00dfe", "l": "1"})),
    case(
        "NUL",
        b"k: a\x00b\nl: 1\n",
        Loads({"k": "a\u0000b", "l": "1"}),
        Refuses("unacceptable code point '\u0000' (0x0) special characters are not allowed"),
    ),
    case("next line (U+0085) in a value", "k: a\u0085b\nl: 1\n", Loads({"k": "a\u0085b", "l": "1"})),
    case("line separator (U+2028) in a value", "k: a\u2028b\nl: 1\n", Loads({"k": "a\u2028b", "l": "1"})),
    case(
        "no-break space behind the colon",
        "k:\u00a0a\nl: 1\n",
        Loads({"l": "1"}, skipped=(1,)),
        Refuses("mapping values are not allowed here", (2, 2)),
    ),
    case(
        "empty block and empty list",
        "a: {}\nb: []\nc: 1\n",
        Loads({"a": "{}", "b": "[]", "c": "1"}),
        Loads({"b": "[]", "c": "1"}),
    ),
    case(
        "lists",
        "a: [x, y]\nb: [1, 'p;q', \"r, s\"]\nc: [{k: v}]\n",
        Loads({"a": "[x, y]", "b": "[1, 'p;q', \"r, s\"]", "c": "[{k: v}]"}),
        Loads({"a": "[x, y]", "b": "[1, p;q, 'r, s']", "c": "[{k: v}]"}),
    ),
    case(
        "text in several lines",
        "a: |\n  one\n  two\nb: >\n  one\n  two\nc: 1\n",
        Loads({"a": "|", "b": ">", "c": "1"}, skipped=(2, 3, 5, 6)),
        Loads({"a": "one\ntwo\n", "b": "one two\n", "c": "1"}),
    ),
    case(
        "value continued in the next line",
        "a: one\n  two\nb: 1\n",
        Loads({"a": "one", "b": "1"}, skipped=(2,)),
        Loads({"a": "one two", "b": "1"}),
    ),
    case(
        "quotes over two lines",
        'a: "one\n  two"\nb: 1\n',
        Loads({"a": '"one', "b": "1"}, skipped=(2,)),
        Loads({"a": "one two", "b": "1"}),
    ),
    case(
        "colon and blank in quotes",
        'k: "a: b"\nl: 1\n',
        Loads({"k": '"a: b"', "l": "1"}),
        Loads({"k": "a: b", "l": "1"}),
    ),
    case("colon in a value", "k: a:b\nl: 1\n", Loads({"k": "a:b", "l": "1"})),
    case("blank before the colon", "k : v\nl: 1\n", Loads({"k": "v", "l": "1"})),
    case(
        "blank only before the colon",
        "k :v\nl: 1\n",
        Loads({"l": "1"}, skipped=(1,)),
        Refuses("mapping values are not allowed here", (2, 2)),
    ),
    case(
        "equals sign",
        "k=v\nl: 1\n",
        Loads({"l": "1"}, skipped=(1,)),
        Refuses("mapping values are not allowed here", (2, 2)),
    ),
    case(
        "key alone",
        "k\nl: 1\n",
        Loads({"l": "1"}, skipped=(1,)),
        Refuses("mapping values are not allowed here", (2, 2)),
    ),
    case("blank in a key", "a b: v\nl: 1\n", Loads({"a b": "v", "l": "1"})),
    case("all keys indented", "  k: v\n  l: 1\n", Loads({"k": "v", "l": "1"})),
    case(
        "first key indented",
        " k: v\nl: 1\n",
        Loads({"k": "v", "l": "1"}),
        Refuses("expected '<document start>', but found '<block mapping start>'", (2, 1)),
    ),
    case(
        "second key indented",
        "k: v\n l: 1\n",
        Loads({"k": "v", "l": "1"}),
        Refuses("mapping values are not allowed here", (2, 3)),
    ),
    case(
        "indentation that fits no block",
        "external-resource:\n  gpu:\n    amount: 2\n   param: 1\n",
        Loads({"amount": "2", "param": "1"}, skipped=(1, 2)),
        Refuses("expected <block end>, but found '<block mapping start>'", (4, 4)),
    ),
    case(
        "quote without end",
        'k: "v\nl: 1\n',
        Loads({"k": '"v', "l": "1"}),
        Refuses("found unexpected end of stream", (3, 1)),
    ),
    case(
        "text behind quotes",
        'k: "a" b\nl: 1\n',
        Loads({"k": '"a" b', "l": "1"}),
        Refuses("expected <block end>, but found '<scalar>'", (1, 8)),
    ),
    case(
        "escapes in quotes",
        "k: \"a\\tb\\u0041\"\nl: 'it''s'\n",
        Loads({"k": '"a\\tb\\u0041"', "l": "'it''s'"}),
        Loads({"k": "a\tbA", "l": "it's"}),
    ),
    case(
        "unknown escape",
        'k: "C:\\q"\nl: 1\n',
        Loads({"k": '"C:\\q"', "l": "1"}),
        Refuses("found unknown escape character q(113)", (1, 8)),
    ),
    case(
        "brace without end",
        "k: {a\nl: 1\n",
        Loads({"k": "{a", "l": "1"}),
        Refuses("expected ',' or '}', but got :", (2, 2)),
    ),
    case(
        "double braces",
        "k: {{ x }}\nl: 1\n",
        Loads({"k": "{{ x }}", "l": "1"}),
        Refuses("ClassCastException: class java.util.LinkedHashMap cannot be cast to class java.lang.String"),
    ),
    case(
        "key with a question mark", "? k\n: v\nl: 1\n", Loads({"l": "1"}, skipped=(1, 2)), Loads({"k": "v", "l": "1"})
    ),
    case(
        "list as a key",
        "[a, b]: c\nl: 1\n",
        Loads({"[a, b]": "c", "l": "1"}),
        Refuses("ClassCastException: class java.util.ArrayList cannot be cast to class java.lang.String"),
    ),
    case(
        "--- first", f"---\n{GPU}amount: 2\n", Loads({f"{GPU}amount": "2"}, skipped=(1,)), Loads({f"{GPU}amount": "2"})
    ),
    case("%YAML directive", "%YAML 1.2\n---\nk: v\n", Loads({"k": "v"}, skipped=(1, 2)), Loads({"k": "v"})),
    case("... last", "k: v\n...\n", Loads({"k": "v"}, skipped=(2,)), Loads({"k": "v"})),
    case("--- last", "k: v\n---\n", Loads({"k": "v"}, skipped=(2,)), Refuses("but found another document", (2, 1))),
    case(
        "a list",
        "- a\n- b\n",
        Loads({}, skipped=(1, 2)),
        Refuses("ClassCastException: class java.util.ArrayList cannot be cast to class java.util.Map"),
    ),
    case(
        "a word",
        "hello\n",
        Loads({}, skipped=(1,)),
        Refuses("ClassCastException: class java.lang.String cannot be cast to class java.util.Map"),
    ),
    case("null alone", "~\n", Loads({}, skipped=(1,)), Loads({})),
    case("everything in braces", "{k: v, l: {m: 1}}\n", Loads({"{k": "v, l: {m: 1}}"}), Loads({"k": "v", "l.m": "1"})),
)
