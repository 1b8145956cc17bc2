//! `weir key`: the data key. It is made here if Weir was never started on this folder.

use super::{Failed, Place, ask};
use crate::app::folder::{self, Folder};

pub(super) fn run(place: &Place) -> Result<(), Failed> {
    let path = ask::folder(place)?;
    let key = match folder::read_key(&path, false) {
        Ok(key) => key,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let folder =
                Folder::open(Some(path)).map_err(|error| Failed::Command(error.to_string()))?;
            folder.keys().map_err(|error| Failed::Command(error.to_string()))?.data
        }
        Err(error) => {
            return Err(Failed::Command(format!(
                "The key in {} cannot be read ({error}). Run this as the user who runs Weir.",
                path.display()
            )));
        }
    };
    println!("{}", key.expose());
    Ok(())
}
