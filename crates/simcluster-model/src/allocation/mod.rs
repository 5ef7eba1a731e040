//! What Services are given by the cluster: cluster IPs and node ports.
//!
//! The allocator follows the writes to Services, so it knows what is held without looking at them.
//! What a write under way has found free is reserved for it until the write is stored or fails.

use std::collections::BTreeSet;
use std::fmt;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::object;

/// Ports of nodes that Services get.
const NODE_PORTS: RangeInclusive<u16> = 30000..=32767;
/// Node ports below this one are left to those who ask for them by number, as long as others are free.
const FIRST_DYNAMIC_PORT: u16 = 30086;

/// Why something cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AllocationError {
    /// Somebody has the address.
    #[error("provided IP is already allocated")]
    AddressTaken,
    /// No network of the cluster has the address.
    #[error("the provided network does not match the current range")]
    NoSuchNetwork,
    /// A dry run is told of the network.
    #[error("the provided IP ({0}) is not in the valid range. The range of valid IPs is {1}")]
    OutOfNetwork(String, ServiceNetwork),
    /// Somebody has the port.
    #[error("provided port is already allocated")]
    PortTaken,
    /// No node port has this number.
    #[error(
        "provided port is not in the valid range. The range of valid ports is {}-{}",
        NODE_PORTS.start(),
        NODE_PORTS.end()
    )]
    OutOfPorts,
    /// Nothing is left.
    #[error("range is full")]
    Full,
}

/// The network of the addresses that Services get (`--service-cluster-ip-range`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceNetwork {
    base: u32,
    prefix: u8,
}

/// A text that is no network for Services.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no IPv4 network of Services: write one like 10.0.0.0/16, from /12 to /28")]
pub struct InvalidNetwork(String);

impl ServiceNetwork {
    /// The address of the API server's own Service.
    #[must_use]
    pub fn first(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.base + 1)
    }

    fn size(self) -> u32 {
        1 << (32 - u32::from(self.prefix))
    }

    /// All addresses but those of the network itself and of its broadcasts.
    fn addresses(self) -> RangeInclusive<u32> {
        self.base + 1..=self.base + self.size() - 2
    }

    /// The first address that is handed out while others are free; those below are left to clients who
    /// ask for them by name.
    fn first_dynamic(self) -> u32 {
        let reserved = if self.size() <= 16 { 0 } else { (self.size() / 16).clamp(16, 256) };
        self.base + 1 + reserved
    }
}

impl Default for ServiceNetwork {
    /// `10.0.0.0/16`.
    fn default() -> Self {
        Self { base: Ipv4Addr::new(10, 0, 0, 0).to_bits(), prefix: 16 }
    }
}

impl FromStr for ServiceNetwork {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let parse = || {
            let (address, prefix) = text.split_once('/')?;
            let (address, prefix) = (address.parse::<Ipv4Addr>().ok()?, prefix.parse::<u8>().ok()?);
            (12..=28).contains(&prefix).then(|| {
                let network = Self { base: 0, prefix };
                Self { base: address.to_bits() & !(network.size() - 1), prefix }
            })
        };
        parse().ok_or_else(|| InvalidNetwork(text.to_owned()))
    }
}

impl fmt::Display for ServiceNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from_bits(self.base), self.prefix)
    }
}

/// Addresses and ports.
#[derive(Debug, Default)]
struct Holdings {
    addresses: BTreeSet<u32>,
    ports: BTreeSet<u16>,
}

impl Holdings {
    /// What a Service holds.
    fn of(service: &Value) -> Self {
        let list = |path: &str| {
            object::at_path(service, path).and_then(Value::as_array).into_iter().flatten()
        };
        let addresses = list("spec.clusterIPs").filter_map(Value::as_str).filter_map(parse_address);
        let ports = list("spec.ports").filter_map(|port| port.get("nodePort"));
        let ports = ports.chain(object::at_path(service, "spec.healthCheckNodePort"));
        let ports = ports.filter_map(Value::as_i64).filter_map(|port| u16::try_from(port).ok());
        Self { addresses: addresses.collect(), ports: ports.filter(|port| *port != 0).collect() }
    }

    fn add(&mut self, other: &Self) {
        self.addresses.extend(&other.addresses);
        self.ports.extend(&other.ports);
    }

    fn remove(&mut self, other: &Self) {
        for address in &other.addresses {
            self.addresses.remove(address);
        }
        for port in &other.ports {
            self.ports.remove(port);
        }
    }
}

fn parse_address(text: &str) -> Option<u32> {
    text.parse::<Ipv4Addr>().ok().map(Ipv4Addr::to_bits)
}

#[derive(Debug, Default)]
struct State {
    /// What stored Services have.
    held: Holdings,
    /// What writes under way are to have.
    reserved: Holdings,
}

/// Knows what is free, and gives it to one write only.
#[derive(Debug, Clone, Default)]
pub struct ServiceAllocator {
    network: ServiceNetwork,
    state: Arc<Mutex<State>>,
}

impl ServiceAllocator {
    /// An allocator without Services.
    #[must_use]
    pub fn new(network: ServiceNetwork) -> Self {
        Self { network, state: Arc::default() }
    }

    /// The network of cluster IPs.
    #[must_use]
    pub fn network(&self) -> ServiceNetwork {
        self.network
    }

    /// Takes note of a stored write to a Service. Must be called in the order of the writes.
    pub fn follow(&self, before: Option<&Value>, after: Option<&Value>) {
        let mut state = self.state();
        if let Some(before) = before {
            state.held.remove(&Holdings::of(before));
        }
        if let Some(after) = after {
            state.held.add(&Holdings::of(after));
        }
    }

    /// What one write will need. A dry run reserves nothing.
    #[must_use]
    pub fn reservation(&self, dry_run: bool) -> Reservation {
        Reservation { allocator: self.clone(), dry_run, taken: Holdings::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn has_address(&self, address: u32) -> bool {
        self.held.addresses.contains(&address) || self.reserved.addresses.contains(&address)
    }

    fn has_port(&self, port: u16) -> bool {
        self.held.ports.contains(&port) || self.reserved.ports.contains(&port)
    }

    /// Whether nothing is left; a search need not begin then.
    fn is_full(&self, network: ServiceNetwork) -> bool {
        let taken = self.held.addresses.len() + self.reserved.addresses.len();
        usize::try_from(network.size() - 2).is_ok_and(|size| taken >= size)
    }
}

/// What one write has found free. Dropped after the write was stored (then the stored Service holds it)
/// or has failed (then it is free again).
#[derive(Debug)]
pub struct Reservation {
    allocator: ServiceAllocator,
    dry_run: bool,
    taken: Holdings,
}

impl Reservation {
    /// Whether nothing will be stored.
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// Reserves the address that a client asked for.
    pub(crate) fn address(&mut self, asked: &str) -> Result<(), AllocationError> {
        let network = self.allocator.network;
        let address = parse_address(asked).filter(|one| network.addresses().contains(one));
        let Some(address) = address else {
            return Err(if self.dry_run {
                AllocationError::OutOfNetwork(asked.to_owned(), network)
            } else {
                AllocationError::NoSuchNetwork
            });
        };
        if self.dry_run {
            return Ok(());
        }
        let mut state = self.allocator.state();
        if state.has_address(address) {
            return Err(AllocationError::AddressTaken);
        }
        state.reserved.addresses.insert(address);
        self.taken.addresses.insert(address);
        Ok(())
    }

    /// Reserves any free address: from a random place on, first above the block that is left to those who
    /// ask by name, then in it. A dry run gets the network's own address.
    pub(crate) fn any_address(&mut self, random: u64) -> Result<Ipv4Addr, AllocationError> {
        let network = self.allocator.network;
        if self.dry_run {
            return Ok(Ipv4Addr::from_bits(network.base));
        }
        let mut state = self.allocator.state();
        if state.is_full(network) {
            return Err(AllocationError::Full);
        }
        let all = network.addresses();
        let first = network.first_dynamic();
        let offset = random % u64::from(all.end() - first + 1);
        let start = first + u32::try_from(offset).unwrap_or_default();
        let mut candidates = (start..=*all.end()).chain(first..start).chain(*all.start()..first);
        let free = candidates.find(|address| !state.has_address(*address));
        let address = free.ok_or(AllocationError::Full)?;
        state.reserved.addresses.insert(address);
        self.taken.addresses.insert(address);
        Ok(Ipv4Addr::from_bits(address))
    }

    /// Reserves the node port that a client asked for.
    pub(crate) fn port(&mut self, asked: i64) -> Result<(), AllocationError> {
        let port = u16::try_from(asked).ok().filter(|port| NODE_PORTS.contains(port));
        let Some(port) = port else { return Err(AllocationError::OutOfPorts) };
        let mut state = self.allocator.state();
        if state.has_port(port) || self.taken.ports.contains(&port) {
            return Err(AllocationError::PortTaken);
        }
        self.taken.ports.insert(port);
        if !self.dry_run {
            state.reserved.ports.insert(port);
        }
        Ok(())
    }

    /// Reserves any free node port; a dry run gets one that no Service can have.
    pub(crate) fn any_port(&mut self, random: u64) -> Result<u16, AllocationError> {
        if self.dry_run {
            let port = self.taken.ports.last().map_or(32769, |last| last.saturating_add(1));
            self.taken.ports.insert(port);
            return Ok(port);
        }
        let mut state = self.allocator.state();
        let (all, first) = (NODE_PORTS, FIRST_DYNAMIC_PORT);
        let offset = random % u64::from(all.end() - first + 1);
        let start = first + u16::try_from(offset).unwrap_or_default();
        let mut candidates = (start..=*all.end()).chain(first..start).chain(*all.start()..first);
        let free = candidates.find(|port| !state.has_port(*port));
        let port = free.ok_or(AllocationError::Full)?;
        state.reserved.ports.insert(port);
        self.taken.ports.insert(port);
        Ok(port)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.dry_run {
            self.allocator.state().reserved.remove(&self.taken);
        }
    }
}

#[cfg(test)]
mod tests;
