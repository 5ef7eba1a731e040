//! What conversations need before they begin.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::case::Step;
use crate::error::Error;
use crate::player::{header, read, request};
use crate::target::Target;

/// How long it may take until a resource is served.
const SERVED: Duration = Duration::from_secs(15);
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// Applies an object of a fixture and waits, if it is a CRD, until its resource is served.
pub(crate) async fn apply(target: &Target<'_>, mut object: Value) -> Result<(), Error> {
    let text = |path| object.pointer(path).and_then(Value::as_str).map(str::to_owned);
    let name = text("/metadata/name").unwrap_or_default();
    let fault = |fault: &str| Error::Fixture { name: name.clone(), fault: fault.to_owned() };
    let collection = text("/x-path").ok_or_else(|| fault("there is no x-path"))?;
    let probe = served_path(&object);
    if let Some(object) = object.as_object_mut() {
        object.remove("x-path");
    }
    let mut step = Step::new(format!("PATCH {collection}/{name}?fieldManager=fixtures&force=true"));
    step.headers = BTreeMap::from([header("Content-Type", "application/apply-patch+yaml")]);
    step.text = Some(object.to_string());
    let answer = target.send(request(&step, &BTreeMap::new())?).await?;
    if !answer.status().is_success() {
        return Err(fault(&String::from_utf8_lossy(&read(&step, answer).await?)));
    }
    let Some(probe) = probe else { return Ok(()) };
    let deadline = Instant::now() + SERVED;
    let get = Step::new(format!("GET {probe}"));
    while target.send(request(&get, &BTreeMap::new())?).await?.status() != 200 {
        if Instant::now() >= deadline {
            return Err(fault("it is never served"));
        }
        sleep(PAUSE).await;
    }
    Ok(())
}

/// Where the resource of a CRD is served; `None` if the object is none.
fn served_path(object: &Value) -> Option<String> {
    let text = |path| object.pointer(path).and_then(Value::as_str);
    if text("/kind") != Some("CustomResourceDefinition") {
        return None;
    }
    let versions = object.pointer("/spec/versions")?.as_array()?;
    let served = versions.iter().find(|version| version.get("served") == Some(&json!(true)))?;
    let version = served.get("name")?.as_str()?;
    Some(format!("/apis/{}/{version}/{}", text("/spec/group")?, text("/spec/names/plural")?))
}
