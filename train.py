"""Train the network: ``python train.py data.root=FOLDER``; ``sanity=true`` only checks that it can learn."""

from gfm.cli.train import train_door

if __name__ == "__main__":
    train_door()
