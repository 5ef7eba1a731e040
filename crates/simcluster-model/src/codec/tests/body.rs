use std::cell::Cell;

use serde_json::{Value, json};

use crate::codec::{body, json as json_text, yaml};
use crate::registry;

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
fn what_a_repeated_key_says_is_looked_at_without_what_stands_beside_it() {
    let again: Vec<String> =
        (0..1000).map(|number| format!(r#""labels":{{"a":"{number}"}}"#)).collect();
    let large = "x".repeat(10_000);
    let text = format!(
        r#"{{"data":{{"a":"{large}"}},"metadata":{{"name":"a","labels":{{"b":"{large}"}},{}}}}}"#,
        again.join(",")
    );
    let kinds = registry::built_in();
    let config_map = kinds.iter().find(|one| one.plural == "configmaps").unwrap();
    let mut parsed = body::parse(text.as_bytes(), "application/json", config_map).unwrap();
    let (seen, bytes) = (Cell::new(0), Cell::new(0));
    let decoded: Result<Value, ()> = parsed.decode(|value| {
        seen.set(seen.get() + 1);
        bytes.set(bytes.get() + value.to_string().len());
        Ok(value)
    });
    assert_eq!(decoded.unwrap()["metadata"]["labels"]["a"], "999");
    assert_eq!(seen.get(), 1002, "each value, and the object");
    assert!(bytes.get() < 10 * text.len(), "{} bytes of {}", bytes.get(), text.len());
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

fn nested(depth: usize) -> String {
    "[".repeat(depth) + &"]".repeat(depth)
}

#[test]
fn json_that_is_nested_too_deeply_is_refused() {
    assert!(json_text::parse(nested(127).as_bytes()).is_ok());
    check_fault(&nested(128), "invalid character '[' exceeded max depth");
    check_fault(&"[".repeat(3_000_000), "invalid character '[' exceeded max depth");
    check_fault(&r#"{"a":"#.repeat(600_000), "invalid character '{' exceeded max depth");
    check_fault(
        &nested(127).replace("[]", "[x]"),
        "invalid character 'x' looking for beginning of value",
    );
}

#[test]
fn yaml_that_is_nested_too_deeply_is_refused() {
    assert!(yaml::parse(nested(127).as_bytes()).is_ok());
    let block = |depth: usize| {
        (0..depth).fold(String::new(), |text, level| text + &" ".repeat(level) + "a:\n")
    };
    assert!(yaml::parse(block(127).as_bytes()).is_ok());
    let aliases = (1..200).fold("a0: &a0 []\n".to_owned(), |text, level| {
        text + &format!("a{level}: &a{level} [*a{}]\n", level - 1)
    });
    assert!(yaml::parse(aliases.as_bytes()).is_err());
    for text in [nested(128), "[".repeat(300_000), block(128), "- ".repeat(200)] {
        let fault = yaml::parse(text.as_bytes()).unwrap_err();
        let shown: String = text.chars().take(20).collect();
        assert!(fault.ends_with("exceeded max depth of 127"), "{shown}: {fault}");
    }
}

#[test]
fn yaml_may_have_as_many_nodes_as_a_body_holds() {
    let text = format!("[{}]", "1,".repeat(260_000));
    assert_eq!(yaml::parse(text.as_bytes()).unwrap().value.as_array().unwrap().len(), 260_000);
}

#[test]
fn yaml_that_grows_by_aliases_is_refused() {
    let bomb = (1..30).fold("a0: &a0 [x]\n".to_owned(), |text, level| {
        let before = format!("*a{}", level - 1);
        text + &format!("a{level}: &a{level} [{}]\n", vec![before; 9].join(","))
    });
    assert!(yaml::parse(bomb.as_bytes()).is_err());
}
