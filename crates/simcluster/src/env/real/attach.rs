//! simcluster's controllers as clients of a real API server: they do what nobody else there does.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::mpsc;
use std::thread;

use kube::Config;

use crate::env::Error;
use simcluster_clock::Clock;
use simcluster_controllers::{self as controllers, Kind};
use simcluster_server::auth::User;

/// Runs controllers for as long as the process lives, on a thread of their own: the tests' runtimes
/// come and go. Returns when they have been started.
pub(super) fn attach(config: Config, kinds: BTreeSet<Kind>, root_ca: String) -> Result<(), Error> {
    let (tell, told) = mpsc::channel();
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => return drop(tell.send(Err(Error::new(error)))),
        };
        runtime.block_on(async {
            let client_for = |name: &str| {
                let user = User::controller(name);
                let mut config = config.clone();
                config.auth_info.impersonate = Some(user.name);
                config.auth_info.impersonate_groups = Some(user.groups);
                kube::Client::try_from(config).expect("the tests have clients of this server")
            };
            let mut settings = controllers::Config::new(Clock::real(), 0);
            settings.kinds = kinds;
            settings.root_ca = root_ca;
            let _controllers = controllers::start(client_for, &settings);
            drop(tell.send(Ok(())));
            pending::<()>().await;
        });
    };
    thread::Builder::new().name("controllers".to_owned()).spawn(run).map_err(Error::new)?;
    told.recv().map_err(Error::new)?
}
