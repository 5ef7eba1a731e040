use serde_json::json;

use crate::codec::{json as json_text, yaml};

#[track_caller]
fn check_fault(text: &str, expected: &str) {
    assert_eq!(json_text::parse(text.as_bytes()).unwrap_err(), expected);
}

#[test]
fn json_faults_are_worded_as_go_words_them() {
    check_fault(r#"{"apiVersion":"#, "unexpected end of JSON input");
    check_fault("", "unexpected end of JSON input");
    check_fault(r#"{"a":1} trailing"#, "invalid character 't' after top-level value");
    check_fault("{a:1}", "invalid character 'a' looking for beginning of object key string");
    check_fault(r#"{"a" 1}"#, "invalid character '1' after object key");
    check_fault(r#"{"a":1 "b":2}"#, "invalid character '\"' after object key:value pair");
    check_fault("[1 2]", "invalid character '2' after array element");
    check_fault("nul", "unexpected end of JSON input");
    check_fault("nux", "invalid character 'x' in literal null (expecting 'l')");
    check_fault("\"a\nb\"", r"invalid character '\n' in string literal");
    check_fault("hello", "invalid character 'h' looking for beginning of value");
    check_fault("1.x", "invalid character 'x' after decimal point in numeric literal");
}

#[test]
fn duplicate_keys_are_named_by_path_and_the_last_counts() {
    let text = br#"{"spec":{"size":"S","size":"M","size":"L","free":[{"a":1,"a":2}]}}"#;
    let parsed = json_text::parse(text).unwrap();
    assert_eq!(parsed.value, json!({"spec": {"size": "L", "free": [{"a": 2}]}}));
    assert_eq!(parsed.duplicates, ["spec.size", "spec.free[0].a"]);
}

#[test]
fn yaml_duplicate_keys_are_named_by_line() {
    let text = b"apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec:\n  size: S\n  size: M\n";
    let parsed = yaml::parse(text).unwrap();
    assert_eq!(parsed.value["spec"], json!({"size": "M"}));
    assert_eq!(parsed.duplicates, [r#"line 6: key "size" already set in map"#]);
}

#[test]
fn yaml_is_read_as_version_1_1() {
    let parsed = yaml::parse(b"a: yes\nb: 0644\n1: x\nc: ~\nd: 2020-01-01\ne: 1.5\n").unwrap();
    let expected = json!({"a": true, "b": 420, "1": "x", "c": null, "d": "2020-01-01", "e": 1.5});
    assert_eq!(parsed.value, expected);
}

#[test]
fn yaml_faults_carry_the_line() {
    let fault = yaml::parse(b"a: [b").unwrap_err();
    assert_eq!(fault, "yaml: line 1: did not find expected ',' or ']'");
}
