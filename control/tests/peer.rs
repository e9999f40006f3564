//! `run_with_peer` against programs that speak what was recorded between two Linux programs. The live ones are in tests/interop-short.sh.

use rockhopper::perf::{
    Link, Outcome, Params, PeerOptions, PeerProgram, Piece, RunError, Shared, Until, run_with_peer,
};
use rockhopper::{
    Access, ConnectOptions, Cq, Device, Endpoint, Mr, Qp, QpInfo, QpOptions, QpType, RecvWr, RingPair, SendWr,
};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(10);
const SIZE: usize = 5000;

/// The Linux program's end: a port of its own, QPs, memory.
struct Program {
    cq: Cq,
    qps: Vec<Qp>,
    mr: Mr,
    line: TcpStream,
}

impl Program {
    fn new(device: &Device, line: TcpStream, qps: usize) -> Program {
        let (pd, cq) = (device.alloc_pd(), device.create_cq(256).unwrap());
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
        let mr = pd.reg_mr(1 << 16, access).unwrap();
        let qps = (0..qps).map(|_| pd.create_qp(&QpOptions::new(QpType::Rc, &cq)).unwrap()).collect();
        line.set_read_timeout(Some(SOON)).unwrap();
        Program { cq, qps, mr, line }
    }

    fn info(&self, qp: usize) -> QpInfo {
        self.qps[qp].info(&ConnectOptions::default())
    }

    fn connect(&self, qp: usize, qpn: u32, psn: u32, gid: &str) {
        let peer = QpInfo { qpn, psn, gid: gid.parse().unwrap(), ..self.info(qp) };
        self.qps[qp]
            .connect(
                &peer,
                &ConnectOptions { path_mtu: rockhopper::Mtu::from_bytes(1024), ..Default::default() },
            )
            .unwrap();
    }

    fn hear(&mut self, bytes: usize) -> Vec<u8> {
        let mut heard = vec![0; bytes];
        self.line.read_exact(&mut heard).unwrap();
        heard
    }

    fn say(&mut self, bytes: &[u8]) {
        self.line.write_all(bytes).unwrap();
    }

    /// A server's step: the client speaks first, and says the same or what differs from end to end.
    fn swap(&mut self, bytes: &[u8]) -> Vec<u8> {
        let heard = self.hear(bytes.len());
        self.say(bytes);
        heard
    }

    /// perftest's record of a QP: its part of the memory is behind that of the messages it would send.
    fn record(&self, qp: usize) -> Vec<u8> {
        let info = self.info(qp);
        let std::net::IpAddr::V4(gid) = info.gid else { panic!("{info:?}") };
        let [a, b, c, d] = gid.octets();
        let addr = self.mr.addr() + ((self.qps.len() + qp) * SIZE) as u64;
        let key = self.mr.rkey().value();
        let zeros = "00:".repeat(10);
        format!(
            "0000:0001:{:06x}:{:06x}:{key:08x}:{addr:016x}:{zeros}ff:ff:{a:02x}:{b:02x}:{c:02x}:{d:02x}:00000000:\0",
            info.qpn, info.psn
        )
        .into_bytes()
    }
}

/// QPN, PSN and IPv4 GID of a record.
fn parts(record: &[u8]) -> (u32, u32, String) {
    let text = std::str::from_utf8(record).unwrap().trim_end_matches('\0');
    let fields: Vec<&str> = text.split(':').collect();
    let number = |text: &str| u32::from_str_radix(text, 16).unwrap();
    if fields.len() == 4 {
        let gid: Vec<String> =
            (24..32).step_by(2).map(|at| number(&fields[3][at..at + 2]).to_string()).collect();
        return (number(fields[1]), number(fields[2]), gid.join("."));
    }
    let gid: Vec<String> = fields[18..22].iter().map(|byte| number(byte).to_string()).collect();
    (number(fields[2]), number(fields[3]), gid.join("."))
}

fn params(op: &str, size: usize, qps: u32, iters: u64) -> Params {
    Params {
        size: size as u32,
        qps,
        mtu: 1024,
        depth: 8,
        until: Until::Iters(iters),
        ..Params::new(op.parse().unwrap())
    }
}

/// Runs ours against `theirs`, which has the other end of the ring and of the line.
fn meet(
    program: PeerProgram,
    is_server: bool,
    params: &Params,
    theirs: impl FnOnce(Program) + Send,
) -> (Result<Outcome, RunError>, Vec<Piece>) {
    let (near, far) = Endpoint::ring_pair(&RingPair::default()).unwrap();
    let (near, far) = (near.device(0).unwrap(), far.device(0).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let line = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (other, _) = listener.accept().unwrap();
    let mut held = Vec::new();
    let mut hold = |pieces: &[Piece]| held.extend_from_slice(pieces);
    let outcome = std::thread::scope(|scope| {
        let theirs = scope.spawn(move || theirs(Program::new(&far, other, params.qps as usize)));
        let options =
            PeerOptions { program, is_server, gid_index: None, ipv6: false, hold: Some(&mut hold), cm: None };
        let outcome = run_with_peer(Link::tcp(line).unwrap(), &near, params, options, &Shared::default());
        theirs.join().unwrap();
        outcome
    });
    (outcome, held)
}

/// The server of ib_write_bw, step by step.
fn write_bw_server(program: &mut Program, figures: &mut Vec<u64>) {
    let mut version = b"6.06".to_vec();
    version.resize(16, 0);
    assert_eq!(program.swap(&version), version);
    assert_eq!(program.swap(&[0, 0, 0x10, 0]), [0, 0, 0x10, 0]);
    assert_eq!(program.swap(&[0, 0, 0, 64]), [0, 0, 0, 64]);
    assert_eq!(program.swap(b"3\0"), b"3\0");
    let records = [program.record(0), program.record(1)];
    let mut firsts = Vec::new();
    for (qp, record) in records.iter().enumerate() {
        let theirs = program.swap(record);
        let (qpn, psn, gid) = parts(&theirs);
        program.connect(qp, qpn, psn, &gid);
        firsts.push(theirs);
    }
    for (record, first) in records.iter().zip(&firsts) {
        assert_eq!(&program.swap(record), first, "the records again");
    }
    assert_eq!(program.swap(&records[0]), firsts[0], "messages may flow");
    assert_eq!(program.swap(&records[0]), firsts[0], "all is sent");
    for _ in 0..5 {
        figures.push(u64::from_be_bytes(program.swap(&[0; 8]).try_into().unwrap()));
    }
    assert_eq!(program.swap(&records[0]), firsts[0]);
    program.say(b"done\0");
    assert_eq!(program.hear(5), b"done\0");
}

#[test]
fn a_perftest_server_is_spoken_to_as_its_own_client_does() {
    let mut figures = Vec::new();
    let mut crcs = Vec::new();
    let (outcome, held) =
        meet(PeerProgram::Perftest, false, &params("write-bw", SIZE, 2, 20), |mut program| {
            write_bw_server(&mut program, &mut figures);
            for qp in 0..2 {
                let mut bytes = vec![0; SIZE];
                program.mr.read((2 + qp) * SIZE, &mut bytes).unwrap();
                crcs.push((program.mr.addr() + ((2 + qp) * SIZE) as u64, crc32fast::hash(&bytes)));
            }
        });
    let outcome = outcome.unwrap();
    assert_eq!((outcome.messages(), outcome.faults()), (40, 0));
    assert!(!outcome.is_verified(), "nothing was compared at this end");
    assert_eq!(figures[..2], [SIZE as u64, 40], "size and messages are told");
    let held: Vec<(u64, u32)> = held.iter().map(|piece| (piece.addr, piece.crc32)).collect();
    assert_eq!(held, crcs, "the last message of each QP is where the peer has to look");
    assert_ne!(held[0].1, held[1].1);
}

#[test]
fn another_version_and_another_mtu_are_refused_in_words() {
    for (version, mtu, words) in
        [(b"5.92", b"3\0", "version \"5.92\""), (b"6.06", b"5\0", "path MTU of 4096")]
    {
        let (outcome, _) =
            meet(PeerProgram::Perftest, false, &params("write-bw", SIZE, 1, 5), |mut program| {
                let mut bytes = version.to_vec();
                bytes.resize(16, 0);
                program.swap(&bytes);
                if version == b"6.06" {
                    program.swap(&[0, 0, 0x10, 0]);
                    program.swap(&[0, 0, 0, 64]);
                    program.swap(mtu);
                }
            });
        let why = outcome.unwrap_err().to_string();
        assert!(why.contains(words), "{why}");
    }
}

/// The client of ibv_rc_pingpong: one buffer, which comes back as it is; message `spoilt` comes back otherwise.
fn pingpong_client(mut program: Program, iters: u64, spoilt: Option<u64>) {
    let info = program.info(0);
    let std::net::IpAddr::V4(gid) = info.gid else { panic!("{info:?}") };
    let gid: String = gid.octets().iter().map(|byte| format!("{byte:02x}")).collect();
    program.say(format!("0000:{:06x}:{:06x}:00000000000000000000ffff{gid}\0", info.qpn, info.psn).as_bytes());
    let (qpn, psn, gid) = parts(&program.hear(52));
    program.connect(0, qpn, psn, &gid);
    program.say(b"done\0");
    program.mr.write(0, &[0x7b; SIZE]).unwrap();
    for number in 0..iters {
        if spoilt == Some(number) {
            program.mr.write(77, &[0]).unwrap();
        }
        program.qps[0].post_recv(RecvWr::new(1).sge(program.mr.sge(0..SIZE))).unwrap();
        program.qps[0].post_send(SendWr::send(2).sge(program.mr.sge(0..SIZE))).unwrap();
        for _ in 0..2 {
            assert!(program.cq.wait(SOON).unwrap().is_success());
        }
    }
}

#[test]
fn a_pingpong_client_is_answered_and_every_byte_compared() {
    for (spoilt, faults) in [(None, 0), (Some(0), 1), (Some(3), 1)] {
        let (outcome, _) = meet(PeerProgram::Pingpong, true, &params("send-lat", SIZE, 1, 6), |program| {
            pingpong_client(program, 6, spoilt);
        });
        let outcome = outcome.unwrap();
        assert_eq!((outcome.server.received.compared, outcome.faults()), (6, faults), "{spoilt:?}");
        assert_eq!(outcome.is_verified(), faults == 0);
        assert_eq!(outcome.server.sent.total(), 6);
    }
}

#[test]
fn what_no_linux_program_does_is_refused_before_anything_is_set_up() {
    let refused = |program: PeerProgram, params: Params| program.check(&params).unwrap_err().to_string();
    assert!(refused(PeerProgram::Pingpong, params("write-bw", 64, 1, 5)).contains("use send-lat"));
    assert!(refused(PeerProgram::Perftest, params("write-bw", 0, 1, 5)).contains("size is 0"));
    assert!(refused(PeerProgram::Perftest, params("write-bw", 64, 65, 5)).contains("qps is 65"));
    let timed = Params { until: Until::Millis(10), ..params("write-bw", 64, 1, 5) };
    assert!(refused(PeerProgram::Perftest, timed).contains("--iters"));
    let both = Params { bidirectional: true, ..params("write-bw", 64, 1, 5) };
    assert!(refused(PeerProgram::Perftest, both).contains("--bidirectional"));
}
