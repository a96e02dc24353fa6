# The name of the package of flake.nix, evaluated with a stand-in for nixpkgs: scripts/test-packages nix.
let
  flake = import ../flake.nix;
  systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
  genAttrs = names: make: builtins.listToAttrs (map (name: { inherit name; value = make name; }) names);
  pkgs = {
    rustPlatform.buildRustPackage = package: package;
    installShellFiles = "installShellFiles";
    lib.licenses = { mit = "MIT"; asl20 = "Apache-2.0"; };
  };
  nixpkgs = {
    lib = { inherit genAttrs; };
    legacyPackages = genAttrs systems (_: pkgs);
  };
  outputs = flake.outputs { self = { outPath = ../.; rev = "0"; }; inherit nixpkgs; };
  package = system:
    let found = outputs.packages.${system}.default; in
    assert builtins.pathExists found.cargoLock.lockFile;
    assert found.meta.mainProgram == "sessile" && builtins.elem system found.meta.platforms;
    assert found.env.SESSILE_BUILD_COMMIT == "0";
    assert builtins.all builtins.isString (found.cargoBuildFlags ++ found.nativeBuildInputs);
    "${found.pname}-${found.version}";
in
builtins.foldl' (first: system: assert package system == first; first) (package "x86_64-linux") systems
