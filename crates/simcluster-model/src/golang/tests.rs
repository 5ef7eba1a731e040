//! Tests of Go's forms, against what Go prints.

use serde_json::json;

use super::*;

#[test]
fn numbers_as_go_prints_them() {
    for (number, text) in [
        (json!(1), "1"),
        (json!(1_234_567), "1234567"),
        (json!(100_000.0), "100000"),
        (json!(1_000_000.0), "1e+06"),
        (json!(1_234_567.0), "1.234567e+06"),
        (json!(1.5), "1.5"),
        (json!(0.0001), "0.0001"),
        (json!(0.00001), "1e-05"),
        (json!(1e21), "1e+21"),
    ] {
        assert_eq!(plain(&number), text);
    }
}

#[test]
fn seconds_wrap_around() {
    assert_eq!(seconds(2), SignedDuration::from_secs(2));
    assert_eq!(seconds(i64::MAX), SignedDuration::from_secs(-1));
    assert_eq!(seconds(i64::MIN), SignedDuration::ZERO);
}

#[test]
fn durations_as_go_reads_them() {
    for (text, milliseconds) in [
        ("0", 0),
        ("1s", 1000),
        ("1.5h", 5_400_000),
        ("1m30s", 90_000),
        ("-300ms", -300),
        ("+2s", 2000),
        ("1000us", 1),
        ("1000000ns", 1),
    ] {
        assert_eq!(duration(text), SignedDuration::from_millis(milliseconds), "{text}");
    }
    assert_eq!(duration("9999999h"), SignedDuration::from_nanos(i64::MAX));
}

#[test]
fn what_go_reads_as_no_duration() {
    for good in ["0", "-0", "1h30m", ".5h", "1.h", "+1.5µs"] {
        assert_eq!(duration_fault(good), None, "{good}");
    }
    for bad in ["", "-", "x", "h", " 1h", ".s", "1h.", "9999999999h"] {
        let why = format!("time: invalid duration {}", quote(bad));
        assert_eq!(duration_fault(bad), Some(why), "{bad}");
    }
    for (bad, why) in [
        ("1", "time: missing unit in duration \"1\""),
        ("1h1", "time: missing unit in duration \"1h1\""),
        ("1d", "time: unknown unit \"d\" in duration \"1d\""),
        ("1h ", "time: unknown unit \"h \" in duration \"1h \""),
    ] {
        assert_eq!(duration_fault(bad), Some(why.to_owned()), "{bad}");
    }
}

#[test]
fn values_as_go_prints_them() {
    let value = json!({ "b": [1, "x", null], "a": { "k": true } });
    assert_eq!(plain(&value), "map[a:map[k:true] b:[1 x <nil>]]");
    assert_eq!(
        syntax(&value),
        "map[string]interface {}{\"a\":map[string]interface {}{\"k\":true}, \
         \"b\":[]interface {}{1, \"x\", interface {}(nil)}}"
    );
    assert_eq!(
        json(&json!({ "b": "<&>", "a": [1] })),
        "{\"a\":[1],\"b\":\"\\u003c\\u0026\\u003e\"}"
    );
}

#[test]
fn quotes_as_go_writes_them() {
    assert_eq!(quote("a\"\\\n\u{1}é"), "\"a\\\"\\\\\\n\\x01é\"");
    assert_eq!(quote_list(&["a".to_owned(), "b".to_owned()]), "[\"a\" \"b\"]");
}
