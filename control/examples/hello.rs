//! Two endpoints in one process: connect, WRITE, READ, poll.
//!
//!     cargo run -p rockhopper --example hello
//!
//! With peers on two machines, `Endpoint::start` opens a real port and `exchange` carries the two `QpInfo`s over TCP.

use rockhopper::{Access, ConnectOptions, Endpoint, QpOptions, QpType, RingPair, SendWr};
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    // Each endpoint has one device per port. Here: one each, joined in memory.
    let (ours, theirs) = Endpoint::ring_pair(&RingPair::default())?;
    let (ours, theirs) = (ours.device(0).ok_or("no port")?, theirs.device(0).ok_or("no port")?);

    // Memory and a queue pair on either side.
    let (our_pd, their_pd) = (ours.alloc_pd(), theirs.alloc_pd());
    let source = our_pd.reg_mr(4096, Access::LOCAL_WRITE)?;
    let target = their_pd.reg_mr(4096, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ)?;
    let (our_cq, their_cq) = (ours.create_cq(16)?, theirs.create_cq(16)?);
    let our_qp = our_pd.create_qp(&QpOptions::new(QpType::Rc, &our_cq))?;
    let their_qp = their_pd.create_qp(&QpOptions::new(QpType::Rc, &their_cq))?;

    // Each side tells the other its queue pair, and connects.
    let options = ConnectOptions::default();
    their_qp.connect(&our_qp.info(&options), &options)?;
    our_qp.connect(&their_qp.info(&options), &options)?;

    // WRITE 5 bytes to the peer, READ them back to another place, and wait for both.
    source.write(0, b"hello")?;
    let remote = target.remote();
    our_qp.post_send(SendWr::write(1, remote.at(0)).sge(source.sge(0..5)))?;
    our_qp.post_send(SendWr::read(2, remote.at(0)).sge(source.sge(100..105)))?;
    for expected in [1, 2] {
        let done = our_cq.wait(Duration::from_secs(2)).ok_or("no completion")?;
        assert_eq!((done.wr_id, done.is_success()), (expected, true), "{done:?}");
    }

    let mut back = [0; 5];
    source.read(100, &mut back)?;
    println!("{}", String::from_utf8_lossy(&back));
    assert_eq!(&back, b"hello");
    Ok(())
}
