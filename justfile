# `just` alone lists the recipes.
[private]
default:
    @just --list --unsorted

# Try the operator in this terminal: a simulated cluster, the litmus samples and a live table
sandbox *ARGS:
    cargo run --package simpleapp-operator -- sandbox {{ ARGS }}

# Run the operator on the cluster of the current kubeconfig
run *ARGS:
    cargo run --package simpleapp-operator -- run {{ ARGS }}

# All tests on the simulated cluster, or only those whose names contain ARGS
test *ARGS:
    cargo test --workspace {{ ARGS }}

# The tests again on a real etcd and kube-apiserver
control-plane *ARGS:
    TEST_CLUSTER=control-plane KUBEBUILDER_ASSETS="${KUBEBUILDER_ASSETS:-$(hack/kube-assets/build)}" cargo test --workspace --test fidelity --test env --test integration --test e2e --example own_operator {{ ARGS }}

# The black box tests on the cluster of the current kubeconfig, if its context is one of kind's
e2e *ARGS:
    TEST_CLUSTER=kubeconfig cargo test --package simpleapp-operator --test e2e {{ ARGS }}

# Formatting and lints, as CI judges them
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# Exactly what CI runs
ci:
    .ci/run

# Accept what the snapshot tests see now; read the diff before you commit it
snapshots:
    INSTA_UPDATE=always cargo test --workspace --quiet

# Write config/ anew from the code
manifests:
    cargo run --quiet --package simpleapp-operator -- manifests --output-dir config

# Measure the simulated cluster, and beside it a real one if KUBEBUILDER_ASSETS names its programs
bench *ARGS:
    cargo run --profile bench --package simcluster --example bench -- {{ ARGS }}

# Measure how many apps the sandbox's cluster bears: CPU time and memory until all are at rest
scale *ARGS:
    cargo run --profile bench --package simpleapp-operator --example ten_thousand -- {{ ARGS }}

# Build the programs of a real control plane and print their folder
kube-assets *NAMES:
    @hack/kube-assets/build {{ NAMES }}
