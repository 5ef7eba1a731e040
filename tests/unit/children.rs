//! What the children of an app look like.

use serde_json::Value;
use simpleapp_operator::simpleapp::children::children;

use crate::support::{
    assert_snapshot,
    fixtures::{VALID, app, valid},
};

fn to_yaml(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap()
}

#[test]
fn of_every_fixture() {
    for case in VALID {
        let children = children(&valid(&app(case)));
        let texts: Vec<String> = children.values().map(to_yaml).collect();
        assert_snapshot!(format!("children/{case}"), texts.join("---\n"));
    }
}
