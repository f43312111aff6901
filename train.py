"""Train the network: ``python train.py data.root=FOLDER``; ``sanity=true`` only checks that it can learn."""

from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

from gfm.doors import hydra_door


@hydra.main(version_base="1.3", config_path="configs", config_name="train")
@hydra_door(plain=("resume", "init_from", "work_dir", "data.root", "data.index", "index.encoder"))
def main(config: Any) -> None:
    """Compose, call, report."""
    # Here, not above: help and a mistyped override then answer at once, before torch is loaded.
    from gfm.train.run import train
    from gfm.train.sanity import sanity
    from gfm.train.settings import from_config

    settings = from_config(OmegaConf.to_container(config, resolve=True), HydraConfig.get().runtime.output_dir)
    print((sanity if config.sanity else train)(settings).text())


if __name__ == "__main__":
    main()
