//! Tokens of `ServiceAccounts`, as time passes.

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenReview, TokenReviewStatus};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, PostParams};
use serde_json::json;
use simcluster::SimCluster;

use crate::support::{api, cluster, seconds};

async fn review(cluster: &SimCluster, token: &str) -> TokenReviewStatus {
    let review = json!({ "spec": { "token": token } });
    let review: TokenReview = serde_json::from_value(review).unwrap();
    let reviews: Api<TokenReview> = Api::all(cluster.client());
    reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_token_expires() {
    let cluster = cluster().await;
    seconds(1).await;
    let accounts: Api<ServiceAccount> = api(&cluster);
    let request = json!({ "spec": { "expirationSeconds": 600 } });
    let request: TokenRequest = serde_json::from_value(request).unwrap();
    let params = PostParams::default();
    let issued = accounts.create_token_request("default", &params, &request).await.unwrap();
    let status = issued.status.unwrap();
    let token = status.token.unwrap();
    let created = issued.metadata.creation_timestamp.unwrap().0;
    assert_eq!(status.expiration_timestamp.unwrap().0.duration_since(created).as_secs(), 600);
    // Clocks may differ by a minute.
    seconds(659).await;
    let good = review(&cluster, &token).await;
    assert_eq!((good.authenticated, good.error), (Some(true), None));
    seconds(2).await;
    let expired = review(&cluster, &token).await;
    let why = "[invalid bearer token, service account token has expired]";
    assert_eq!((expired.authenticated, expired.error.as_deref()), (None, Some(why)));
}

#[tokio::test(start_paused = true)]
async fn equal_seeds_issue_equal_tokens_and_no_others() {
    let mut tokens = Vec::new();
    for seed in [1, 1, 2] {
        let cluster = SimCluster::builder().seed(seed).start().unwrap();
        seconds(1).await;
        let accounts: Api<ServiceAccount> = api(&cluster);
        let request = serde_json::from_value(json!({ "spec": {} })).unwrap();
        let params = PostParams::default();
        let issued = accounts.create_token_request("default", &params, &request).await.unwrap();
        tokens.push(issued.status.unwrap().token.unwrap());
    }
    assert_eq!(tokens[0], tokens[1]);
    assert_ne!(tokens[0], tokens[2]);
}
