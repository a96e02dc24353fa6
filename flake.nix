{
  description = "State that stays put for command-line tools and agents";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      each = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
      manifest = (builtins.fromTOML (builtins.readFile ./Cargo.toml)).workspace.package;
    in
    {
      packages = each (pkgs: rec {
        sessile = pkgs.rustPlatform.buildRustPackage {
          pname = "sessile";
          inherit (manifest) version;
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          cargoBuildFlags = [ "-p" "sessile-cli" ];
          # The tests need real tools and servers: scripts/test runs them.
          doCheck = false;
          env.SESSILE_BUILD_COMMIT = self.rev or self.dirtyRev or "";
          nativeBuildInputs = [ pkgs.installShellFiles ];
          postInstall = ''
            export HOME=$TMPDIR
            $out/bin/sessile man --dir man1
            installManPage man1/*.1
            for shell in bash zsh fish; do
              $out/bin/sessile completions $shell > sessile.$shell
            done
            installShellCompletion sessile.{bash,zsh,fish}
          '';
          meta = {
            description = "State that stays put for command-line tools and agents";
            license = with pkgs.lib.licenses; [ mit asl20 ];
            mainProgram = "sessile";
            platforms = systems;
          };
        };
        default = sessile;
      });
    };
}
