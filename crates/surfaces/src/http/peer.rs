//! Whose program is at the other end of a connection of this machine, as the kernel's tables of connections say.
//!
//! It tells users from each other, not programs of one user. Where there is no such table, or no such row, nothing is known.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::TcpStream;

const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// So much of a table is read: some hundred thousand connections.
const TABLE_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// A table is read in pieces and changes meanwhile, so that a row can be missed; it is looked for so often.
const LOOKS_MAX: usize = 3;

/// The two ends of a connection; it stands in the extensions of its requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connection {
    pub(super) peer: SocketAddr,
    pub(super) own: SocketAddr,
}

impl Connection {
    pub(super) fn of(stream: &TcpStream) -> std::io::Result<Self> {
        Ok(Connection { peer: stream.peer_addr()?, own: stream.local_addr()? })
    }

    /// The user whose program opened the connection, if it came over loopback and is still open there.
    pub(super) fn user(self) -> Option<u32> {
        // Our end decides: a program of this machine may well choose another address for its own.
        if !self.own.ip().to_canonical().is_loopback() {
            return None;
        }
        let find = |table: &str| {
            let table = File::open(table).ok()?.take(TABLE_BYTES_MAX);
            self.user_in(BufReader::new(table))
        };
        (0..LOOKS_MAX).find_map(|_| TABLES.into_iter().find_map(find))
    }

    /// The user of the row that is the peer's end.
    fn user_in(self, table: impl BufRead) -> Option<u32> {
        let mut rows = table.lines().map_while(Result::ok);
        rows.find_map(|row| self.user_of(&row))
    }

    fn user_of(self, row: &str) -> Option<u32> {
        let mut columns = row.split_ascii_whitespace().skip(1);
        let (local, remote) = (address(columns.next()?)?, address(columns.next()?)?);
        let is_peers = local == canonical(self.peer) && remote == canonical(self.own);
        // State, queues, timer and retransmissions stand before the user, a timeout before the inode.
        let user = columns.nth(4)?.parse().ok()?;
        let inode: u64 = columns.nth(1)?.parse().ok()?;
        // What a program has closed belongs to nobody, and is said to be root's.
        (is_peers && inode != 0).then_some(user)
    }
}

/// The same for an IPv4 address however it is written.
fn canonical(address: SocketAddr) -> (IpAddr, u16) {
    (address.ip().to_canonical(), address.port())
}

/// `0100007F:1F90`: words of 32 bits as the machine has them in memory, and the port.
fn address(text: &str) -> Option<(IpAddr, u16)> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| Some(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some((ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn connection(peer: &str, own: &str) -> Connection {
        Connection { peer: peer.parse().unwrap(), own: own.parse().unwrap() }
    }

    // As machines with their smallest byte first write them, which are all that there are releases for.
    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1266 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 100 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1266 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 101 1 0000000000000000 20 4 30 10 -1
   2: 0100007F:D431 0100007F:1266 01 00000000:00000000 00:00000000 00000000  1001        0 102 1 0000000000000000 20 4 30 10 -1
   3: 0100007F:D432 0100007F:1266 06 00000000:00000000 03:00000F32 00000000     0        0 0 3 0000000000000000
   4: 0500A8C0:D433 0100007F:1266 01 00000000:00000000 00:00000000 00000000  1003        0 104 1 0000000000000000 20 4 30 10 -1
   5: 00000000000000000000000001000000:D434 00000000000000000000000001000000:1266 01 00000000:00000000 00:00000000 00000000  1004        0 105 1 0000000000000000 20 4 30 10 -1
   6: 0000000000000000FFFF00000100007F:D435 0000000000000000FFFF00000100007F:1266 01 00000000:00000000 00:00000000 00000000  1005        0 106 1 0000000000000000 20 4 30 10 -1
   7: nonsense
   8: 0100007F:D436 0100007F:1266 01
   9: zz00007F:D437 0100007F:1266 01 00000000:00000000 00:00000000 00000000  1007        0 107 1 0
";

    #[test]
    #[cfg(target_endian = "little")]
    fn the_user_is_that_of_the_peers_own_row_and_of_no_other() {
        let own = "127.0.0.1:4710";
        for (peer, own, user) in [
            ("127.0.0.1:54321", own, Some(1001)),
            ("127.0.0.1:54322", own, None),
            ("192.168.0.5:54323", own, Some(1003)),
            ("[::1]:54324", "[::1]:4710", Some(1004)),
            ("127.0.0.1:54325", own, Some(1005)),
            ("[::ffff:127.0.0.1]:54321", "[::ffff:127.0.0.1]:4710", Some(1001)),
            ("127.0.0.1:54326", own, None),
            ("127.0.0.1:54327", own, None),
            ("127.0.0.1:54321", "127.0.0.1:4711", None),
            ("127.0.0.2:54321", own, None),
        ] {
            assert_eq!(connection(peer, own).user_in(TABLE.as_bytes()), user, "{peer} to {own}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn ones_own_connection_is_ones_own_until_it_is_closed() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
        let (_accepted, peer) = server.accept().unwrap();
        let connection = Connection { peer, own: server.local_addr().unwrap() };
        let me = std::fs::metadata("/proc/self").unwrap().uid();
        assert_eq!(connection.user(), Some(me));
        drop(client);
        assert_eq!(connection.user(), None, "what is closed is nobody's");
    }

    #[test]
    fn who_comes_from_another_machine_is_not_looked_for() {
        assert_eq!(connection("192.0.2.7:54321", "192.0.2.1:4710").user(), None);
    }
}
