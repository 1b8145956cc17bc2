//! `weir key`: the data key. It is made here if Weir was never started on this folder.

use super::{Failed, Place, ask};
use crate::app::folder::{self, Folder, FolderError};

pub(super) fn run(place: &Place) -> Result<(), Failed> {
    let path = ask::folder(place)?;
    let key = match folder::read_key(&path, false).map_err(failed)? {
        Some(key) => key,
        None => Folder::open(Some(path)).and_then(|folder| folder.keys()).map_err(failed)?.data,
    };
    println!("{}", key.expose());
    Ok(())
}

fn failed(error: FolderError) -> Failed {
    Failed::Command(error.to_string())
}
