//! Tests of the allocator: ranges to their last number.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::*;

#[test]
fn networks_are_those_that_kube_apiserver_takes() {
    for (text, shown) in [("10.0.0.0/24", "10.0.0.0/24"), ("10.96.7.1/12", "10.96.0.0/12")] {
        assert_eq!(text.parse::<ServiceNetwork>().map(|it| it.to_string()), Ok(shown.to_owned()));
    }
    for text in ["", "10.0.0.0", "10.0.0.0/29", "10.0.0.0/8", "10.0.0/24", "::/112", "10.0.0.0/99", "10.0.0.0/0"] {
        assert!(text.parse::<ServiceNetwork>().is_err(), "{text}");
    }
}

#[test]
fn a_network_is_given_out_to_its_last_address() {
    let allocator = ServiceAllocator::new("10.0.0.0/28".parse().unwrap());
    let mut reservation = allocator.reservation(false);
    let mut given = BTreeSet::new();
    while let Ok(address) = reservation.any_address(5) {
        assert!(given.insert(address));
    }
    assert_eq!(given.len(), 14);
    assert_eq!(given.first(), Some(&Ipv4Addr::new(10, 0, 0, 1)));
    assert_eq!(given.last(), Some(&Ipv4Addr::new(10, 0, 0, 14)));
    drop(reservation);
    assert!(allocator.reservation(false).address("10.0.0.9").is_ok());
}

#[test]
fn low_addresses_are_given_last() {
    let allocator = ServiceAllocator::new("10.0.0.0/24".parse().unwrap());
    let mut reservation = allocator.reservation(false);
    let given: Vec<u8> = std::iter::from_fn(|| reservation.any_address(7).ok())
        .map(|address| address.octets()[3])
        .collect();
    assert_eq!(given.len(), 254);
    assert!(given[..238].iter().all(|host| *host > 16));
    assert_eq!(given[238..], (1..=16).collect::<Vec<u8>>());
}

#[test]
fn ports_are_given_out_to_the_last() {
    let allocator = ServiceAllocator::new(ServiceNetwork::default());
    let mut reservation = allocator.reservation(false);
    let given = std::iter::from_fn(|| reservation.any_port(9).ok()).collect::<BTreeSet<u16>>();
    assert_eq!(given, NODE_PORTS.collect());
    assert_eq!(reservation.port(30000), Err(AllocationError::PortTaken));
    assert_eq!(reservation.port(32768), Err(AllocationError::OutOfPorts));
    assert_eq!(reservation.port(i64::MIN), Err(AllocationError::OutOfPorts));
}
