use std::path::PathBuf;

use serde_json::json;

use super::*;

/// Writes a case, reads it, and returns what is said about it.
#[track_caller]
fn check(name: &str, text: &str, expected: &str) {
    let path = std::env::temp_dir().join(format!("case-{}-{name}.yaml", std::process::id()));
    fs::write(&path, text).unwrap();
    let said = Case::read(&path).map_or_else(|error| error.to_string(), |_| "read".to_owned());
    fs::remove_file(&path).unwrap();
    assert_eq!(said, expected.replace("FILE", &path.display().to_string()));
}

#[test]
fn faults_name_the_file_and_the_field() {
    let step = "id: A\ntitle: t\nsteps:\n- do: GET /a\n  got: {}\n";
    check("right", step, "read");
    check("top", "[]", "FILE: : not an object");
    check("title", "id: A\nsteps: []\n", "FILE: title: missing");
    check(
        "steps",
        "id: A\ntitle: t\nsteps: 1\n",
        "FILE: steps: invalid type: integer `1`, expected a sequence",
    );
    check("more", &format!("{step}extra: 1\n"), "FILE: extra: no field of this name is known");
    check("got", "id: A\ntitle: t\nsteps:\n- do: GET /a\n", "FILE: step 1: got: missing");
    check(
        "save",
        &format!("{step}  save: [a]\n"),
        "FILE: step 1: save: invalid type: sequence, expected a map",
    );
    check(
        "eventz",
        &format!("{step}  eventz: 1\n"),
        "FILE: step 1: eventz: no field of this name is known",
    );
    check(
        "line",
        "id: A\ntitle: t\nsteps:\n- do: GET\n  got: {}\n",
        "FILE: step 1: do: not a method and a path",
    );
    check(
        "both",
        &format!("{step}  body: {{}}\n  text: a\n"),
        "FILE: step 1: text: there is a body already",
    );
}

/// What is written is read again as it was, whatever the texts look like.
#[test]
fn a_written_case_is_read_again() {
    let odd = vec![
        "",
        "y",
        "n",
        "no",
        "Off",
        "null",
        "~",
        "0123",
        "1e3",
        "1.0",
        "0x1F",
        "0o7",
        "1_000",
        "12:30:45",
        "2026-01-01",
        " a",
        "a ",
        "a: b",
        "a #b",
        "- a",
        "{a}",
        "[a]",
        "\"a\"",
        "'a'",
        "a\nb",
        "a\n",
        "\n\na\n\n",
        "a\tb",
        "\u{feff}a",
        "a\u{85}b",
        "a\u{2028}b",
        "\u{1}",
        "é",
        "!a",
        "&a",
        "*a",
        "%a",
        "@a",
        "`a",
        "|",
        ">",
        "?",
        "=",
        "<<",
        ".inf",
        ".nan",
        "{\"a\": 1}",
        "a\r\nb",
    ];
    let long = "word ".repeat(60);
    let mut step = Step::new("POST /a");
    step.headers.insert("Content-Type".to_owned(), "application/json; charset=utf-8".to_owned());
    step.body = Some(json!({
        "texts": odd, "keys": odd.iter().map(|text| ((*text).to_owned(), json!(text))).collect::<Map<_, _>>(),
        "long": long, "numbers": [1, 1.0, 1.5, -1, 1e300, u64::MAX, i64::MIN], "null": null, "empty": [{}, []],
    }));
    step.seconds = 0.5;
    step.events = Some(3);
    step.until.insert("a.b".to_owned(), json!(null));
    step.got = json!({ "status": 200, "type": null, "body": long });
    let mut raw = Step::new("POST /a");
    raw.text = Some("{\"a\": 1,\n\"a\": 2".to_owned());
    let mut null = Step::new("POST /a");
    null.body = Some(Value::Null);
    let case = Case {
        id: "A1".to_owned(),
        rows: vec![],
        title: "t".to_owned(),
        needs: vec![],
        controllers: true,
        hooks: BTreeMap::new(),
        parallel: vec![],
        steps: vec![step, raw, null],
    };

    let path: PathBuf =
        std::env::temp_dir().join(format!("case-{}-written.yaml", std::process::id()));
    fs::write(&path, case.to_yaml().unwrap()).unwrap();
    let read = Case::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    for (read, written) in read.steps.iter().zip(&case.steps) {
        assert_eq!(read, written);
    }
    assert_eq!(read.steps.len(), case.steps.len());
}
