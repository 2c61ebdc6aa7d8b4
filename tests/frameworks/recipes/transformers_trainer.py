"""transformers' Trainer: the group is made first, and TrainingArguments says use_cpu=True."""

import os
import tempfile

import torch
import torch.distributed as dist
from recipe import ASKED, report
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

if ASKED != "gloo":
    dist.init_process_group(ASKED)

WORDS, LENGTH = 50, 8
torch.manual_seed(1)
model = BertForSequenceClassification(
    BertConfig(
        vocab_size=WORDS,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
)
texts = torch.randint(WORDS, (32, LENGTH), generator=torch.Generator().manual_seed(2))
data = [{"input_ids": text, "labels": int(text[0] > WORDS // 2)} for text in texts]
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=os.path.join(folder, "out"),
        use_cpu=True,
        max_steps=6,
        per_device_train_batch_size=4,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=data, eval_dataset=data)
    trainer.train()
    evaluated = trainer.evaluate()["eval_loss"]
steps = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
report([*map(float, steps), float(evaluated)])
dist.destroy_process_group()
