//! `zvf b2nd set`: sets and removes metalayers.

use std::{error::Error, path::PathBuf};

use super::changed::{ChangeArgs, commit};
use crate::{
    dense::{self, ItemTypeArgs, MetalayerValue, parse_metalayer},
    outcome::CommandOutcome,
};

/// Set and remove metalayers, in place
#[derive(Debug, clap::Args)]
pub(crate) struct B2ndSetArgs {
    /// File or sparse directory to change.
    file: PathBuf,
    /// A metalayer: a JSON value, or text.
    ///
    /// If the header has a metalayer of the name, the new value must have the same length as
    /// MessagePack. Otherwise, it is one of the trailer, an attribute.
    #[arg(value_name = "NAME=VALUE", value_parser = parse_metalayer, required_unless_present = "remove")]
    values: Vec<MetalayerValue>,
    /// Remove a metalayer of the trailer. May be given several times.
    #[arg(long, value_name = "NAME")]
    remove: Vec<String>,
    #[command(flatten)]
    change: ChangeArgs,
}

pub(crate) fn run(args: &B2ndSetArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let item = ItemTypeArgs::default();
    let mut editor = dense::b2nd_editor(&args.file, &item, args.change.memory)?;
    for name in &args.remove {
        if !editor
            .array()
            .vlmetalayers()
            .any(|(known, _)| known == name)
        {
            return Err(format!("the trailer has no metalayer {name:?} to remove").into());
        }
        editor.set_vlmetalayer(name, None);
    }
    for layer in &args.values {
        let is_fixed = {
            let mut fixed = editor.array().metalayers();
            fixed.any(|(name, _)| name == layer.name)
        };
        if is_fixed {
            editor.set_metalayer(&layer.name, &layer.body)?;
        } else {
            editor.set_vlmetalayer(&layer.name, Some(&layer.body));
        }
    }
    commit(editor, &args.file, &args.change)
}
