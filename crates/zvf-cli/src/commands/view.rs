//! `zvf view`: shows stores in a browser.

use std::{
    error::Error,
    io,
    net::{Ipv4Addr, SocketAddr},
    process::{Command, Stdio},
};

use serde_json::json;
use zvf::{Dataset, Follow, OpenOptions};
use zvf_serve::{LayerSource, ServeOptions, Server, store_name};

use super::serve::{self, PORT};
use crate::outcome::CommandOutcome;

/// Show stores in a browser
///
/// Serves a page and the stores to this machine, prints the link of the page and opens it. The page
/// reads the parts of the stores that are in view, and asks for more while the view moves. It
/// selects by box, attribute, group and object, and saves what it shows. Ctrl-C ends the server.
///
/// `zvf export viewer` writes the page to a file, for stores in a bucket or on a web server.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zvf view tracts.zv
  zvf view tracts.zv lesion.zv --no-browser")]
pub(crate) struct ViewArgs {
    /// Stores: folders, .zip files, addresses that this build supports.
    #[arg(required = true)]
    stores: Vec<String>,
    /// Port to listen on; by default 9393, or a free one if it is taken.
    #[arg(long)]
    port: Option<u16>,
    /// Print the link without opening a browser.
    #[arg(long)]
    no_browser: bool,
    /// Print the link and the address as one JSON object, without opening a browser.
    #[arg(long)]
    json: bool,
    /// Send unsigned requests, for public buckets.
    #[arg(long)]
    anonymous: bool,
}

/// Serves the page until a signal.
pub(crate) fn run(arguments: &ViewArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    serve::until_signal(view(arguments))
}

async fn view(arguments: &ViewArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let port = arguments.port.unwrap_or(PORT);
    let server = match bind(arguments, port).await {
        Err(error) if arguments.port.is_none() && serve::is_in_use(&*error) => {
            bind(arguments, 0).await
        }
        bound => bound,
    }?;
    // The reader of the line may stop the server at once.
    let stop = serve::stop_signal()?;
    let link = server.page_link();
    serve::print(&if arguments.json {
        json!({ "link": link, "address": server.address() }).to_string()
    } else {
        link.clone()
    })?;
    if !arguments.json && !arguments.no_browser && open_browser(&link).is_err() {
        anstream::eprintln!("note: no browser was found; open the link in one on this machine");
    }
    server.run(stop).await;
    Ok(CommandOutcome::from(String::new()))
}

async fn bind(arguments: &ViewArgs, port: u16) -> Result<Server, Box<dyn Error>> {
    let options = ServeOptions::new().bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let open = OpenOptions::default()
        .anonymous(arguments.anonymous)
        .follow(Follow::Never);
    let mut sources = Vec::with_capacity(arguments.stores.len());
    for address in &arguments.stores {
        let dataset = Dataset::open_with(address, &open).await?;
        let store = dataset.store().clone();
        sources.push(LayerSource::objects(store_name(address), store));
    }
    Ok(Server::bind(sources, &options, &|_, _| {}).await?)
}

/// Opens a link in the browser of the desktop.
fn open_browser(link: &str) -> io::Result<()> {
    let (program, arguments): (_, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else {
        ("xdg-open", &[])
    };
    let mut opening = Command::new(program);
    opening.args(arguments).arg(link);
    let (input, output, errors) = (Stdio::null(), Stdio::null(), Stdio::null());
    opening.stdin(input).stdout(output).stderr(errors).spawn()?;
    Ok(())
}
