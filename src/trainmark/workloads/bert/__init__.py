"""BERT pre-training (Devlin et al. 2019): one program per framework."""
