use jiff::Timestamp;
use serde_json::{Value, json};

use crate::http::table::Printer;
use simcluster_model::builtin::human_duration;
use simcluster_model::registry;

/// Objects that a real server showed as Tables on 2026-11-30, with the rows that it showed.
const SAMPLES: &str = include_str!("tables.json");

#[test]
fn built_in_kinds_are_shown_as_the_real_server_shows_them() {
    let samples: Vec<Value> = serde_json::from_str(SAMPLES).unwrap();
    assert!(samples.len() > 60);
    let now: Timestamp = "2026-11-30T08:31:08Z".parse().unwrap();
    for sample in samples {
        let key = sample["resource"].as_str().unwrap();
        let (group, plural) = key.split_once('/').unwrap_or(("", key));
        let resources = registry::built_in();
        let Some(resource) =
            resources.iter().find(|one| one.group == group && one.plural == plural)
        else {
            continue;
        };
        let row = Printer::new(resource).row(&sample["object"], now);
        let mut expected = sample["row"].clone();
        let created = &sample["object"]["metadata"]["creationTimestamp"];
        let age = now.duration_since(created.as_str().unwrap().parse().unwrap()).as_secs();
        for cell in expected["cells"].as_array_mut().unwrap() {
            if matches!(cell.as_str(), Some("5s" | "6s")) {
                *cell = json!(human_duration(age));
            }
        }
        assert_eq!(row, expected, "{key}");
    }
}

#[track_caller]
fn check_duration(seconds: i64, expected: &str) {
    assert_eq!(human_duration(seconds), expected);
}

#[test]
fn durations_have_two_or_three_figures() {
    check_duration(-5, "<invalid>");
    check_duration(-1, "0s");
    check_duration(119, "119s");
    check_duration(120, "2m");
    check_duration(599, "9m59s");
    check_duration(600, "10m");
    check_duration(3 * 3600, "3h");
    check_duration(3 * 3600 + 60, "3h1m");
    check_duration(47 * 3600, "47h");
    check_duration(50 * 3600, "2d2h");
    check_duration(9 * 86400, "9d");
    check_duration(800 * 86400, "2y70d");
    check_duration(9 * 365 * 86400, "9y");
}

#[track_caller]
fn check_cell(kind: &str, path: &str, expected: &Value) {
    let object = json!({
        "metadata": { "name": "a", "creationTimestamp": "2000-01-01T00:00:00Z",
            "labels": { "example.com/tier": "gold", "app-name": "web" } },
        "spec": { "size": 5, "ratio": 1.5, "on": true, "tags": ["p", "q"], "empty": [], "none": null,
            "conditions": [
                { "type": "Ready", "status": "True" }, { "type": "Odd]", "status": "False" },
            ] },
    });
    let mut resource = simcluster_model::registry::built_in().first().unwrap().as_ref().clone();
    resource.custom = true;
    resource.printer_columns = vec![json!({ "name": "X", "type": kind, "jsonPath": path })];
    let now = "2025-01-01T00:00:00Z".parse().unwrap();
    let row = Printer::new(&resource).row(&object, now);
    assert_eq!(&row["cells"][1], expected, "{path} as {kind}");
}

#[test]
fn cells_of_custom_resources_follow_their_paths_and_types() {
    check_cell("string", ".spec.size", &json!("5"));
    check_cell("integer", ".spec.size", &json!(5));
    check_cell("integer", ".spec.ratio", &json!(1));
    check_cell("number", ".spec.ratio", &json!(1.5));
    check_cell("boolean", ".spec.on", &json!(true));
    check_cell("boolean", ".spec.size", &Value::Null);
    check_cell("string", ".spec.tags", &json!("[\"p\",\"q\"]"));
    check_cell("string", ".spec.empty", &json!("[]"));
    check_cell("string", ".spec.tags[*]", &json!("p"));
    check_cell("string", ".spec.tags[1]", &json!("q"));
    check_cell("string", ".spec.none", &json!("<no value>"));
    check_cell("string", ".spec.missing", &Value::Null);
    check_cell("string", r".metadata.labels.example\.com/tier", &json!("gold"));
    check_cell("string", ".metadata.labels.app-name", &json!("web"));
    check_cell("string", r#".spec.conditions[?(@.type=="Ready")].status"#, &json!("True"));
    check_cell("string", ".spec.conditions[?(@.type=='Odd]')].status", &json!("False"));
    check_cell("date", ".metadata.creationTimestamp", &json!("25y"));
    check_cell("date", ".metadata.name", &json!("<invalid>"));
}
