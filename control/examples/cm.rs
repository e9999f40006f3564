//! Connects two endpoints of this process by connection management and sends a message: `cargo run -p rockhopper --example cm`.

use rockhopper::{Access, Endpoint, RecvWr, RingPair, SendWr, cm};
use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

const WAIT: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn Error>> {
    let (client, server) = Endpoint::ring_pair(&RingPair::default())?;
    let listener = cm::Listener::bind(&server, "10.82.72.2:0".parse()?)?;
    let address = listener.local_addr().ok_or("it is bound")?;
    let server = std::thread::spawn(move || serve(&listener).map_err(|error| error.to_string()));
    say_hello(&client, address)?;
    println!("the server read {:?}", server.join().map_err(|_| "the server panicked")??);
    Ok(())
}

/// Accepts one connection and reads one message.
fn serve(listener: &cm::Listener) -> Result<String, Box<dyn Error>> {
    let connection = listener.accept(WAIT)?;
    let memory = connection.pd().reg_mr(64, Access::LOCAL_WRITE)?;
    connection.qp().post_recv(RecvWr::new(1).sge(memory.sge(0..64)))?;
    let received = connection.cq().wait(WAIT).ok_or("no message")?;
    let mut text = vec![0; received.byte_len as usize];
    memory.read(0, &mut text)?;
    Ok(String::from_utf8(text)?)
}

/// Connects and sends one message.
fn say_hello(endpoint: &Endpoint, to: SocketAddr) -> Result<(), Box<dyn Error>> {
    let connection = cm::connect(endpoint, to, WAIT)?;
    connection.qp().post_send(SendWr::send(1).inline(b"hello"))?;
    let sent = connection.cq().wait(WAIT).ok_or("no completion")?;
    if !sent.is_success() {
        return Err(format!("the message was not sent: {sent:?}").into());
    }
    Ok(connection.disconnect(WAIT)?)
}
