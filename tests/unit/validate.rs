//! The operator's own check of specs.

use serde_json::{Value, json};
use simpleapp_operator::simpleapp::validate::{parse_host, parse_image, parse_name, validate};

use crate::support::fixtures::{INVALID, VALID, app, parse, yaml};

#[track_caller]
fn check<T>(field: &str, parse: impl Fn(&str) -> Result<T, String>) {
    let table = yaml("validation.yaml");
    let texts = |which: &str| -> Vec<String> {
        let texts = table[field][which].as_array().unwrap();
        texts.iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    for text in texts("valid") {
        assert!(parse(&text).is_ok(), "{field} {text:?} is refused: {:?}", parse(&text).err());
    }
    for text in texts("invalid") {
        assert!(parse(&text).is_err(), "{field} {text:?} is accepted");
    }
}

#[test]
fn hosts() {
    check("host", parse_host);
}

#[test]
fn images() {
    check("image", parse_image);
}

#[test]
fn names() {
    check("name", parse_name);
}

#[test]
fn every_fixture_is_what_it_is_called() {
    for case in VALID {
        assert!(validate(&parse(&app(case))).is_ok(), "{case}");
    }
    for case in INVALID {
        assert!(validate(&parse(&app(case))).is_err(), "{case}");
    }
}

#[track_caller]
fn problems(change: impl Fn(&mut Value)) -> String {
    let mut app = app("litmus-3-all-fields");
    change(&mut app);
    let problems = validate(&parse(&app)).unwrap_err();
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn all_problems_are_reported_in_the_order_of_the_fields() {
    let text = problems(|app| {
        app["metadata"]["name"] = json!("1web");
        app["spec"] = json!({"image": "no", "replicas": -1, "port": 0, "host": ""});
    });
    let fields: Vec<&str> = text.lines().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(fields, ["metadata.name", "spec.image", "spec.replicas", "spec.port", "spec.host"]);
}

#[test]
fn a_spec_that_does_not_fit_its_type_is_a_problem_like_any_other() {
    let wrong = [
        json!(null),
        json!("text"),
        json!({}),
        json!({"image": 7}),
        json!({"image": null}),
        json!({"image": "nginx", "replicas": "three"}),
        json!({"image": "nginx", "replicas": 1.5}),
        json!({"image": "nginx", "replicas": null}),
        json!({"image": "nginx", "port": 2_147_483_648_i64}),
        json!({"image": "nginx", "host": ["web.example.com"]}),
    ];
    for spec in wrong {
        let text = problems(|app| app["spec"] = spec.clone());
        assert!(text.starts_with("spec: "), "{spec}: {text}");
    }
}

#[test]
fn a_missing_spec_is_a_problem() {
    let text = problems(|app| {
        app.as_object_mut().unwrap().remove("spec");
    });
    assert_eq!(text, "spec: is missing");
}

#[test]
fn what_the_server_did_not_default_has_the_same_defaults() {
    let mut app = app("litmus-1-image-only");
    app["spec"] = json!({"image": "nginx"});
    let valid = validate(&parse(&app)).unwrap();
    assert_eq!((valid.replicas, valid.port.get(), valid.host), (1, 80, None));
}

#[test]
fn images_whose_tag_can_move_are_pulled_always() {
    for (image, expected) in [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("registry.example.com:5000/team/nginx", "Always"),
        ("nginx:1.29", "IfNotPresent"),
        ("registry.example.com:5000/team/nginx:1.29", "IfNotPresent"),
        (
            "nginx:latest@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "IfNotPresent",
        ),
    ] {
        assert_eq!(parse_image(image).unwrap().pull_policy(), expected, "{image}");
    }
}
