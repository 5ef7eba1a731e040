//! Query parameters, headers and the options of deletes.

use serde_json::json;

use super::Maker;
use crate::case::Step;

impl Maker {
    /// The query of a write.
    pub(super) fn write_options(&mut self, apply: bool) -> String {
        let dice = &mut self.dice;
        let mut options: Vec<String> = Vec::new();
        if dice.chance(if apply { 97 } else { 50 }) {
            options.push(format!("fieldManager={}", dice.text(&["m1", "m1", "m2"])));
        }
        if apply && dice.chance(35) {
            options.push("force=true".to_owned());
        }
        if dice.chance(40) {
            let levels = ["Strict", "Strict", "Warn", "Ignore"];
            options.push(format!("fieldValidation={}", dice.text(&levels)));
        }
        if dice.chance(8) {
            options.push("dryRun=All".to_owned());
        }
        if dice.chance(3) {
            let odd = [
                "fieldValidation=x",
                "dryRun=x",
                "force=x",
                "force=true",
                "fieldManager=",
                "dryRun=All&dryRun=All",
                "x=y",
                "fieldManager=a%01b",
                "pretty=1",
                "timeout=x",
            ];
            options.push(dice.text(&odd));
        }
        query(&options)
    }

    /// The query of a list.
    pub(super) fn list_options(&mut self) -> String {
        let mut options = Vec::new();
        if self.resource.cluster {
            // Nobody else's namespaces.
            options.push("labelSelector=kubernetes.io/metadata.name+in+({ns}-a,{ns}-b)".to_owned());
        } else if self.dice.chance(40) {
            let selectors = [
                "labelSelector=app%3Da",
                "labelSelector=app",
                "labelSelector=!app",
                "labelSelector=app+in+(a,b),tier",
                "labelSelector=app+notin+(a)",
                "labelSelector=%3D",
                "labelSelector=app%3D%3D%3Da",
                "labelSelector=a+b",
                "labelSelector=x%3E1",
                "labelSelector=app+in+(",
            ];
            options.push(self.dice.text(&selectors));
        }
        if self.dice.chance(30) {
            let selectors = [
                "fieldSelector=metadata.name%3Da",
                "fieldSelector=metadata.name!%3Da",
                "fieldSelector=metadata.namespace%3D{ns}",
                "fieldSelector=metadata.name%3Da,metadata.name%3Db",
                "fieldSelector=spec.size%3DS",
                "fieldSelector=type%3DOpaque",
                "fieldSelector=spec.type%3DClusterIP",
                "fieldSelector=status.phase%3DActive",
                "fieldSelector=x",
                "fieldSelector=metadata.x%3Da",
            ];
            let mut selector = self.dice.text(&selectors);
            if self.resource.cluster {
                selector = selector.replace("name%3Da", "name%3D{ns}-a");
            }
            options.push(selector);
        }
        if !self.resource.cluster && self.dice.chance(15) {
            options.push(self.dice.text(&["limit=1", "limit=500", "limit=-1", "limit=x"]));
        }
        if self.dice.chance(10) {
            let version = self.seen_version();
            let matching = self.dice.text(&[
                "",
                "&resourceVersionMatch=Exact",
                "&resourceVersionMatch=NotOlderThan",
                "&resourceVersionMatch=x",
            ]);
            options.push(format!("resourceVersion={version}{matching}"));
        }
        if self.dice.chance(4) {
            options.push(self.dice.text(&[
                "continue=x",
                "resourceVersionMatch=Exact",
                "sendInitialEvents=true",
                "watch=x",
                "timeoutSeconds=x",
                "allowWatchBookmarks=1",
            ]));
        }
        query(&options)
    }

    /// The query of a delete.
    pub(super) fn delete_query(&mut self) -> String {
        let dice = &mut self.dice;
        let mut options = Vec::new();
        if dice.chance(20) {
            let policies = ["Orphan", "Background", "Foreground", "x"];
            options.push(format!("propagationPolicy={}", dice.text(&policies)));
        }
        if dice.chance(8) {
            options.push(dice.text(&[
                "gracePeriodSeconds=0",
                "gracePeriodSeconds=5",
                "gracePeriodSeconds=-1",
                "gracePeriodSeconds=x",
                "orphanDependents=true",
                "orphanDependents=false",
                "dryRun=All",
                "dryRun=x",
            ]));
        }
        query(&options)
    }

    /// The options in the body of a delete; most have none.
    pub(super) fn delete_body(&mut self, step: &mut Step) {
        if self.dice.chance(55) {
            return;
        }
        let version = self.seen_version();
        let bodies = [
            json!({}),
            json!({ "kind": "DeleteOptions", "apiVersion": "v1" }),
            json!({ "kind": "DeleteOptions", "apiVersion": "apps/v1", "propagationPolicy": "Background" }),
            json!({ "kind": "Foo", "apiVersion": "v1" }),
            json!({ "propagationPolicy": "Orphan" }),
            json!({ "propagationPolicy": "Foreground" }),
            json!({ "propagationPolicy": "Background", "gracePeriodSeconds": 0 }),
            json!({ "propagationPolicy": 7 }),
            json!({ "propagationPolicy": "" }),
            json!({ "gracePeriodSeconds": "1" }),
            json!({ "gracePeriodSeconds": -1 }),
            json!({ "gracePeriodSeconds": 1.5 }),
            json!({ "gracePeriodSeconds": 2.0 }),
            json!({ "preconditions": { "uid": "x" } }),
            json!({ "preconditions": { "uid": 5 } }),
            json!({ "preconditions": { "resourceVersion": version } }),
            json!({ "preconditions": {} }),
            json!({ "dryRun": ["All"] }),
            json!({ "dryRun": ["x"] }),
            json!({ "dryRun": "All" }),
            json!({ "orphanDependents": true }),
            json!({ "orphanDependents": false, "propagationPolicy": "Foreground" }),
            json!({ "orphanDependents": "x" }),
            json!({ "unknown": 1 }),
            json!({ "ignoreStoreReadErrorWithClusterBreakingPotential": true }),
            json!([]),
            json!(null),
        ];
        step.body = Some(self.dice.pick(&bodies).clone());
        if self.dice.chance(10) {
            step.headers.insert(
                "Content-Type".to_owned(),
                self.dice.text(&[
                    "application/yaml",
                    "text/plain",
                    "application/json; charset=utf-8",
                ]),
            );
        }
    }

    /// Asks for an answer in another form.
    pub(super) fn accept(&mut self, step: &mut Step) {
        if !self.dice.chance(25) {
            return;
        }
        let forms = [
            "application/json;as=Table;v=v1;g=meta.k8s.io",
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            "application/yaml",
            "text/html",
            "*/*",
        ];
        step.headers.insert("Accept".to_owned(), self.dice.text(&forms));
    }

    /// A version that an earlier answer had.
    pub(super) fn seen_version(&mut self) -> String {
        if self.saved == 0 {
            "1".to_owned()
        } else {
            format!("{{rv{}}}", 1 + self.dice.below(self.saved))
        }
    }
}

fn query(options: &[String]) -> String {
    if options.is_empty() { String::new() } else { format!("?{}", options.join("&")) }
}
