use serde_json::json;

use super::*;

fn post(line: &str, body: Value) -> Step {
    let mut step = Step::new(line);
    step.body = Some(body);
    step
}

#[tokio::test]
async fn only_what_shows_it_stays() {
    let steps: Vec<Step> = (0..9)
        .map(|number| {
            let body = json!({ "number": number, "list": [{ "a": 1, "b": [1, 2] }, 3], "c": "d" });
            post(&format!("POST /things?x=1&n={number}&y=2"), body)
        })
        .collect();
    // Step 3 must come before step 7, which must have its list's inner list.
    let shows = async |steps: &[Step]| {
        let third = steps.iter().position(|step| step.line.contains("n=3"));
        let seventh = steps.iter().position(|step| {
            let body = step.body.clone().unwrap_or_default();
            step.line.contains("n=7") && body.pointer("/list/0/b").is_some()
        });
        matches!((third, seventh), (Some(third), Some(seventh)) if third < seventh)
    };
    let shrunk = shrink(&steps, 1000, shows).await;
    let expected =
        [Step::new("POST /things?n=3"), post("POST /things?n=7", json!({ "list": [{ "b": [] }] }))];
    assert_eq!(shrunk, expected);
}

#[tokio::test]
async fn texts_lose_lines_and_parts() {
    let mut yaml = Step::new("POST /a");
    yaml.text = Some("a: 1\nb: 2\nc: 3\n".to_owned());
    let shows = async |steps: &[Step]| {
        steps.iter().any(|step| step.text.as_deref().is_some_and(|text| text.contains("b: 2")))
    };
    let shrunk = shrink(&[yaml.clone(), yaml], 100, shows).await;
    assert_eq!(shrunk.len(), 1);
    assert_eq!(shrunk[0].text.as_deref(), Some("b: 2\n"));
}

#[tokio::test]
async fn the_number_of_tries_is_a_limit() {
    let steps = vec![post("POST /a", json!({ "a": 1, "b": 2 })); 8];
    let mut tries = 0;
    let shows = async |_: &[Step]| {
        tries += 1;
        false
    };
    assert_eq!(shrink(&steps, 5, shows).await, steps);
    assert_eq!(tries, 5);
}
