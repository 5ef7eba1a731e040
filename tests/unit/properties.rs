//! What holds for every input, not only for those that somebody thought of.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use simpleapp_operator::{
    kernel::ownership::Child,
    simpleapp::{
        children::children,
        observed::{ChildKind, Observed},
        plan::{Operation, plan},
        status,
        validate::{parse_host, parse_image, parse_name, validate},
    },
};

use crate::support::{
    fixtures::{app, dynamic, guarded, parse, stored, valid},
    world::{SETTINGS, now},
};

prop_compose! {
    fn valid_spec()(
        image in "[a-z0-9]{1,8}(/[a-z]{1,5}){0,3}(:[a-z0-9_]{1,5})?".prop_filter("short", |i| i.len() > 2),
        replicas in 0..=i32::MAX,
        port in 1..=65535,
        host in proptest::option::of(r"(\*\.)?[a-z]([-a-z0-9]{0,10}[a-z0-9])?(\.[a-z]{1,5}){0,4}"),
    ) -> Value {
        let mut spec = json!({"image": image, "replicas": replicas, "port": port});
        if let Some(host) = host {
            spec["host"] = json!(host);
        }
        spec
    }
}

prop_compose! {
    fn valid_app()(name in "[a-z]([-a-z0-9]{0,61}[a-z0-9])?", spec in valid_spec()) -> Value {
        let mut app = guarded("litmus-1-image-only");
        app["metadata"]["name"] = json!(name);
        app["spec"] = spec;
        app
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("image|host|port|replicas|[a-z]{1,4}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Carries out the operations of plans on a model of the server until there are none left, and
/// says how many plans that took.
fn settle(mut observed: Observed) -> (Observed, usize) {
    for plans in 0..10 {
        let operations = plan(&observed, SETTINGS, now()).operations;
        if operations.is_empty() {
            return (observed, plans);
        }
        for operation in operations {
            carry_out(&mut observed, operation);
        }
    }
    panic!("plans without end: {observed:#?}");
}

fn carry_out(observed: &mut Observed, operation: Operation) {
    match operation {
        Operation::Apply { kind, uid, child } => {
            let uid = uid.unwrap_or_else(|| format!("new-{kind:?}"));
            let live = Child::of(&dynamic(&stored(&child, &uid, 300)));
            observed.children.insert(kind, Arc::new(live));
        }
        Operation::Delete { kind, uid, .. } => {
            let gone = observed.children.remove(&kind).unwrap();
            assert!(gone.is_controlled_by(&observed.app.uid), "deletes what is not ours");
            assert_eq!(gone.uid, uid);
        }
        Operation::ListPods => observed.pods = Some(Vec::new()),
        Operation::AddFinalizer => {
            let mut app = (*observed.app).clone();
            app.finalizers.push(crate::support::fixtures::FINALIZER.into());
            observed.app = Arc::new(app);
        }
        Operation::RemoveFinalizer => {
            let mut app = (*observed.app).clone();
            app.finalizers.clear();
            observed.app = Arc::new(app);
        }
        Operation::TakePort { .. } => panic!("nobody else writes here"),
        Operation::CleanUp { .. } => {}
    }
}

fn is_well_formed(child: &Value, app: &Value) -> Result<(), TestCaseError> {
    let labels = child["metadata"]["labels"].as_object().unwrap();
    prop_assert!(labels.values().all(|value| value.as_str().unwrap().len() <= 63));
    prop_assert_eq!(&child["metadata"]["name"], &app["metadata"]["name"]);
    prop_assert_eq!(&child["metadata"]["ownerReferences"][0]["uid"], &app["metadata"]["uid"]);
    let text = child.to_string();
    prop_assert!(
        !text.contains(":null") && !text.contains("[]") && !text.contains("{}"),
        "{}",
        text
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn children_of_any_valid_app_are_well_formed(app in valid_app()) {
        let children = children(&valid(&app));
        prop_assert_eq!(children.contains_key(&ChildKind::Ingress), app["spec"].get("host").is_some());
        for child in children.values() {
            is_well_formed(child, &app)?;
        }
        let deployment = &children[&ChildKind::Deployment];
        let pod_labels = deployment["spec"]["template"]["metadata"]["labels"].as_object().unwrap();
        for (name, value) in deployment["spec"]["selector"]["matchLabels"].as_object().unwrap() {
            prop_assert_eq!(pod_labels.get(name), Some(value));
        }
        prop_assert_eq!(
            &children[&ChildKind::Service]["spec"]["selector"],
            &deployment["spec"]["selector"]["matchLabels"]
        );
    }

    #[test]
    fn the_plan_of_a_plan_is_empty(before in valid_app(), spec in valid_spec()) {
        let (settled, plans) = settle(Observed::new(Arc::new(parse(&before)), [].into()));
        prop_assert_eq!(plans, 1);
        // From any state to any other, then nothing, and the same as made from nothing.
        let mut after = before.clone();
        after["spec"] = spec;
        let mut edited = settled;
        edited.app = Arc::new(parse(&after));
        let (edited, plans) = settle(edited);
        prop_assert!(plans <= 1);
        let (fresh, _) = settle(Observed::new(Arc::new(parse(&after)), [].into()));
        let owned = |observed: &Observed| -> Vec<(ChildKind, Option<Value>)> {
            observed.children.iter().map(|(kind, child)| (*kind, child.owned.clone())).collect()
        };
        prop_assert_eq!(owned(&edited), owned(&fresh));
    }

    #[test]
    fn a_status_that_was_written_is_not_written_again(app in valid_app(), ready in 0..5, total in 0..5) {
        let (mut observed, _) = settle(Observed::new(Arc::new(parse(&app)), [].into()));
        let mut deployment = (*observed.children[&ChildKind::Deployment]).clone();
        deployment.status = json!({
            "observedGeneration": 1, "replicas": total, "updatedReplicas": total, "readyReplicas": ready,
        });
        observed.children.insert(ChildKind::Deployment, Arc::new(deployment));
        let (mut observed, _) = settle(observed);
        let status = plan(&observed, SETTINGS, now()).status.unwrap();
        let mut app = (*observed.app).clone();
        app.status = serde_json::from_value(serde_json::to_value(status).unwrap()).unwrap();
        observed.app = Arc::new(app);
        // Later somebody looks at the pods, and sees none that fail.
        observed.pods = Some(Vec::new());
        let later = now() + std::time::Duration::from_hours(1);
        let again = plan(&observed, SETTINGS, later);
        prop_assert!(again.operations.is_empty() && again.status.is_none() && again.events.is_empty());
    }

    #[test]
    fn no_spec_and_no_status_panics(spec in any_value(), status in any_value(), name in any::<String>()) {
        let mut app = app("litmus-1-image-only");
        app["metadata"]["name"] = json!(name);
        app["spec"] = spec;
        app["status"] = status.clone();
        let parsed = Arc::new(parse(&app));
        let mut observed = Observed::new(parsed.clone(), [].into());
        if let Ok(valid) = validate(&parsed) {
            for (kind, child) in children(&valid) {
                let mut child = Child::of(&dynamic(&stored(&child, "uid", 1)));
                child.status = status.clone();
                observed.children.insert(kind, Arc::new(child));
            }
        }
        let planned = plan(&observed, SETTINGS, now());
        prop_assert!(planned.requeue.is_none_or(|wait| wait.as_secs() >= 1), "{:?}", planned.requeue);
        let _ = status::assess(&observed, &validate(&parsed));
    }

    #[test]
    fn any_text_is_accepted_or_refused(text in any::<String>()) {
        let _ = (parse_host(&text), parse_image(&text), parse_name(&text));
    }
}
