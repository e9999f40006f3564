//! `rockhopper address`: the addresses of a running endpoint, shown, added and removed through its admin socket.

use crate::cli::failure::Failure;
use crate::cli::out::say;
use rockhopper::admin::{self, AdminError, Changed, LinkInfo};
use rockhopper::net::Prefix;
use serde_json::json;
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct AddressArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Show links, addresses and GID indices.
    Show(Running),
    /// Add an address, as in 192.0.2.1/24.
    Add {
        /// The address and the bits of its network.
        prefix: String,
        #[command(flatten)]
        running: Running,
        /// The link: a port's name, or PORT.VLAN. May be left out when there is only one.
        #[arg(long, value_name = "LINK")]
        link: Option<String>,
    },
    /// Remove an address, and end what uses it.
    Remove {
        /// The address, with or without the bits of its network.
        address: String,
        #[command(flatten)]
        running: Running,
        /// The link: a port's name, or PORT.VLAN. May be left out when only one has the address.
        #[arg(long, value_name = "LINK")]
        link: Option<String>,
    },
}

/// Which endpoint.
#[derive(clap::Args)]
struct Running {
    /// The endpoint's configuration file, which names its admin socket.
    #[arg(short, long, value_name = "FILE", required_unless_present = "socket")]
    config: Option<PathBuf>,
    /// The endpoint's admin socket.
    #[arg(long, value_name = "PATH", conflicts_with = "config")]
    socket: Option<PathBuf>,
}

pub fn run(args: &AddressArgs, json: bool) -> Result<(), Failure> {
    match &args.action {
        Action::Show(running) => {
            let links = admin::addresses(&running.socket()?).map_err(Failure::setup)?;
            if json {
                say(json!({ "links": links }));
            } else {
                links.iter().for_each(show);
            }
        }
        Action::Add { prefix, running, link } => {
            let wanted: Prefix = prefix.parse().map_err(|why| Failure::setup(format!("{prefix}: {why}")))?;
            let done = admin::add_address(&running.socket()?, link.as_deref(), wanted);
            tell(done, json, |done| {
                format!(
                    "{} is on {}, with GID index {}",
                    done.address,
                    done.link,
                    done.index.unwrap_or_default()
                )
            })?;
        }
        Action::Remove { address, running, link } => {
            let text = address.split('/').next().unwrap_or_default();
            let wanted: IpAddr = text.parse().map_err(|_| {
                Failure::setup(format!("{address} is no address; write it as in 192.0.2.1 or 2001:db8::1"))
            })?;
            let done = admin::remove_address(&running.socket()?, link.as_deref(), wanted);
            tell(done, json, |done| format!("{} is gone from {}", done.address, done.link))?;
        }
    }
    Ok(())
}

impl Running {
    fn socket(&self) -> Result<PathBuf, Failure> {
        match (&self.socket, &self.config) {
            (Some(socket), _) => Ok(socket.clone()),
            (None, Some(config)) => crate::cli::stats::socket_of(config),
            // One of them is required.
            (None, None) => Ok(PathBuf::new()),
        }
    }
}

fn tell(
    done: Result<Changed, AdminError>,
    json: bool,
    words: impl Fn(&Changed) -> String,
) -> Result<(), Failure> {
    let done = done.map_err(Failure::setup)?;
    say(if json { json!(done).to_string() } else { words(&done) });
    Ok(())
}

fn show(link: &LinkInfo) {
    say(format_args!("{}  {}", link.name, link.mac));
    for address in &link.addresses {
        let gids: Vec<String> =
            address.gids.iter().map(|gid| format!("GID {} RoCE {}", gid.index, gid.gid_type)).collect();
        say(format_args!("  {:<42} {}", address.prefix, gids.join(", ")));
    }
    for conflict in &link.conflicts {
        let admin::ConflictInfo { address, mac, count } = conflict;
        say(format_args!(
            "  note: {mac} uses {address}, too (heard {count} times): give one of the two another address"
        ));
    }
}
