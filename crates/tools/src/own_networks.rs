//! Finds this machine's addresses and the networks that it is in. The web tools treat these as private even
//! if the addresses are public, because a neighbouring server may trust requests from this machine.
//!
//! The kernel's lists (`/proc/net`) are read each time, because addresses change. Systems other than Linux
//! have no such lists: there only the machine's own addresses are recognised.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket},
};

/// An address of this machine, with the length of its network prefix in bits.
pub(crate) type Network = (IpAddr, u8);

/// A function that returns the networks of this machine.
pub(crate) type Networks = fn() -> Vec<Network>;

/// Returns the networks that this machine is in now.
pub(crate) fn networks() -> Vec<Network> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let mut found = of_version_4(&read("/proc/net/fib_trie"));
    found.extend(of_version_6(&read("/proc/net/if_inet6")));
    found
}

/// Returns whether an address is in one of the networks, or is this machine's own.
pub(crate) fn is_near(address: IpAddr, networks: &[Network]) -> bool {
    networks.iter().any(|network| holds(*network, address)) || is_here(address)
}

/// Returns whether an address is this machine's own. To test that, a socket is connected to the address: its
/// local address is the same only if the address is the machine's own. No packet is sent.
fn is_here(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let from = || {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((address, DISCARD))?;
        socket.local_addr()
    };
    from().is_ok_and(|from| from.ip() == address)
}

/// The port to which [`is_here`] connects its socket; any port would do, because nothing is sent.
const DISCARD: u16 = 9;

fn holds((network, length): Network, address: IpAddr) -> bool {
    let same = |a: u128, b: u128, bits: u32| (a ^ b).checked_shr(bits - u32::from(length)).unwrap_or(0) == 0;
    match (network, address) {
        (IpAddr::V4(a), IpAddr::V4(b)) if length <= 32 => same(a.to_bits().into(), b.to_bits().into(), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) if length <= 128 => same(a.to_bits(), b.to_bits(), 128),
        _ => false,
    }
}

/// Parses the kernel's routing table `fib_trie`: a line with an address is followed by lines with the routes
/// of this address.
fn of_version_4(table: &str) -> Vec<Network> {
    let (mut own, mut links) = (Vec::new(), Vec::new());
    let mut address = None;
    for line in table.lines().map(str::trim) {
        if let Some(named) = line.strip_prefix("|-- ") {
            address = named.parse::<Ipv4Addr>().ok().map(IpAddr::from);
        } else if let (Some(address), Some(route)) = (address, line.strip_prefix('/')) {
            let mut words = route.split_whitespace();
            let length = words.next().and_then(|length| length.parse().ok());
            match (length, words.next(), words.next()) {
                (Some(length), Some("host"), Some("LOCAL")) => own.push((address, length)),
                (Some(length), Some("link"), Some("UNICAST")) if length >= WIDEST => {
                    links.push((address, length))
                }
                _ => {}
            }
        }
    }
    // A tunnel can route half of the internet; the network of an address is the narrowest route that contains
    // it.
    let network = |(address, _): &Network| {
        links.iter().filter(|link| holds(**link, *address)).max_by_key(|(_, length)| *length).copied()
    };
    let networks: Vec<_> = own.iter().filter_map(network).collect();
    [own, networks].concat()
}

/// Minimum prefix length, in bits, of a network that counts as the machine's.
const WIDEST: u8 = 8;

/// Parses the kernel's list of interfaces: the address and, as the third word, the prefix length, in
/// hexadecimal.
fn of_version_6(list: &str) -> Vec<Network> {
    let network = |line: &str| {
        let mut words = line.split_whitespace();
        let address = u128::from_str_radix(words.next()?, 16).ok()?;
        let length = u8::from_str_radix(words.nth(1)?, 16).ok().filter(|length| *length >= WIDEST)?;
        Some((Ipv6Addr::from_bits(address).into(), length))
    };
    list.lines().filter_map(network).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTES: &str = "\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
        /1 link UNICAST
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.0
           /8 host LOCAL
     +-- 198.41.0.0/24 2 0 2
        +-- 198.41.0.0/30 2 0 2
           |-- 198.41.0.0
              /16 link UNICAST
              /24 link UNICAST
           |-- 198.41.0.4
              /32 host LOCAL
        |-- 198.41.0.255
           /32 link BROADCAST
     |-- 11.0.0.0
        /8 link UNICAST
     |-- 100.1.2.3
        /32 host LOCAL
";

    const INTERFACES: &str = "\
26000001000000000000000000000002 04 40 00 80     eth0
00000000000000000000000000000001 01 80 10 80       lo
2a000000000000000000000000000007 05 00 00 80     tun0
";

    // spec: TE-48
    #[test]
    fn is_near_for_own_addresses_and_for_the_narrowest_networks_that_they_stand_in() {
        let networks = [of_version_4(ROUTES), of_version_6(INTERFACES)].concat();
        let near = |address: &str| {
            let address = address.parse().unwrap();
            networks.iter().any(|network| holds(*network, address))
        };
        for address in ["198.41.0.4", "198.41.0.200", "127.3.2.1", "100.1.2.3", "2600:1::2", "2600:1::ffff:1"]
        {
            assert!(near(address), "{address}");
        }
        for address in ["198.41.1.4", "8.8.8.8", "11.1.1.1", "100.1.2.4", "2600:1:0:1::2", "2a00::8"] {
            assert!(!near(address), "{address}");
        }
        assert_eq!(of_version_4("no\n|-- x\n/9 host LOCAL\n"), []);
        assert_eq!(of_version_6("zz\n00"), []);
    }

    // spec: TE-48
    #[test]
    fn is_here_without_any_list_for_an_address_at_which_this_machine_answers() {
        assert!(is_here(Ipv4Addr::LOCALHOST.into()));
        assert!(is_near(Ipv4Addr::LOCALHOST.into(), &[]));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn networks_on_linux_hold_the_loop() {
        assert!(networks().iter().any(|network| holds(*network, Ipv4Addr::LOCALHOST.into())));
    }
}
