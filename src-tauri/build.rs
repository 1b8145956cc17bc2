//! Prepares the desktop program for Tauri: reads `tauri.conf.json` beside the root manifest, embeds `ui/dist`.
//!
//! The headless program must lie in `gen/bin/` before this runs, because the bundle carries both; the scripts put
//! it there. Whoever builds only `weir-desktop` learns that from the error that Tauri prints.
//!
//! **Invariant**: only `weir-desktop` has a build script of ours; the headless packages build without one.

fn main() {
    let attributes = tauri_build::Attributes::new()
        .app_manifest(
            tauri_build::AppManifest::new()
                .permissions_path_pattern("./src-tauri/permissions/**/*"),
        )
        .capabilities_path_pattern("./src-tauri/capabilities/**/*");
    println!("cargo:rerun-if-changed=src-tauri/permissions");
    tauri_build::try_build(attributes)
        .expect("tauri.conf.json, icons, ui/dist and gen/bin are in place");
}
